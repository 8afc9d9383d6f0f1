"""CreatePartitions request that Apache Kafka rejects but partly executes (docs/findings.md).

    python examples/clients/rejected_partitions.py apache-kafka:4.3.1

The second CreatePartitions request is only validated. It is valid if the topic still has one partition. A line with `!`
shows a response that differs from the expected one.
"""

from kafkatrial.suite import activate

activate()

from conformance.sequential.program import show  # noqa: E402
from conformance.sequential.steps import CreatePartitions, CreateTopic, Script  # noqa: E402

SCRIPT = Script((CreateTopic(), CreatePartitions(10_002), CreatePartitions(2, validate_only=True)))

if __name__ == "__main__":
    show(SCRIPT, requirement="docs/findings.md", target="reference", nodes=1)
