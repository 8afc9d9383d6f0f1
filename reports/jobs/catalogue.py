"""Catalogue of the report's jobs and of the stages that they read, in the order of execution."""

from typing import Final

from reports.jobs.cluster import KNOWN_ENDS, LAG, LEADERSHIP, PROGRESS
from reports.jobs.definition import Job, Stage
from reports.jobs.fate import DELIVERY, FAULTS_IN_RUN, KEYS, LOAD, PLACES, PRODUCERS, SENDS
from reports.jobs.work import (
    AVAILABILITY,
    BATCHES,
    ERRORS,
    LATENCY,
    LATENCY_BUCKETS,
    LATENCY_BY_FAULT,
    LATENCY_OVERALL,
    OPERATION_PARTITIONS,
    THROUGHPUT,
)

STEPS: Final[tuple[Job | Stage, ...]] = (
    FAULTS_IN_RUN,
    LATENCY_BUCKETS,
    LATENCY,
    LATENCY_OVERALL,
    LATENCY_BY_FAULT,
    OPERATION_PARTITIONS,
    THROUGHPUT,
    AVAILABILITY,
    ERRORS,
    BATCHES,
    LOAD,
    KNOWN_ENDS,
    PROGRESS,
    LAG,
    LEADERSHIP,
    KEYS,
    PLACES,
    SENDS,
    DELIVERY,
    PRODUCERS,
)

JOBS: Final = tuple(step for step in STEPS if isinstance(step, Job))
