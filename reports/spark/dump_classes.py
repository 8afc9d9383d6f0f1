"""The program that writes an archive of the classes that a judgement loads (`reports.spark.archive` runs it).

The JVM writes the archive when it ends, so the program waits until the JVM has ended.
"""

from pyspark import SparkContext

from reports.spark.session import spark_session


def main() -> None:
    """Run a job that loads what a judgement loads."""
    with spark_session("local[1]") as spark:
        copied = spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id long")
        copied.repartitionById(2, "id").sortWithinPartitions("id").toArrow()
        gateway = SparkContext._gateway  # noqa: SLF001 - PySpark's only way to the JVM
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main()
