"""Small histories of Jepsen's Kafka workload, each with at most one defect and the anomalies that the checks must find.

The unit tests of Jepsen have a case for each of its anomalies. These histories contain the same anomalies. A line is
`PROCESS TYPE F VALUE`; the time of an event is the number of its line.
"""

LOST = """
0 invoke send [[:send 4 70]]
0 ok     send [[:send 4 [0 70]]]
1 invoke send [[:send 4 71]]
1 ok     send [[:send 4 [1 71]]]
2 invoke poll [[:poll]]
2 ok     poll [[:poll {4 [[1 71]]}]]
"""
OVERWRITTEN = """
0 invoke send [[:send 4 70]]
0 ok     send [[:send 4 [5 70]]]
1 invoke send [[:send 4 71]]
1 ok     send [[:send 4 [5 71]]]
2 invoke poll [[:poll]]
2 ok     poll [[:poll {4 [[5 71]]}]]
"""
HALF_A_TRANSACTION = """
0 invoke txn [[:send 1 20] [:send 2 30]]
0 info   txn [[:send 1 20] [:send 2 [0 30]]]
1 invoke send [[:send 2 31]]
1 info   send [[:send 2 31]]
2 invoke poll [[:poll]]
2 ok     poll [[:poll {1 [[0 20]]}]]
3 invoke poll [[:poll]]
3 ok     poll [[:poll {2 [[1 31]]}]]
"""
UNPROVED_TRANSACTION = """
0 invoke txn [[:send 1 20] [:send 2 30]]
0 info   txn [[:send 1 20] [:send 2 [0 30]]]
1 invoke send [[:send 2 31]]
1 info   send [[:send 2 31]]
3 invoke poll [[:poll]]
3 ok     poll [[:poll {2 [[1 31]]}]]
"""
TWO_ACKNOWLEDGED_AT_ONE_OFFSET = """
0 invoke send [[:send 11 641]]
0 ok     send [[:send 11 [537 641]]]
1 invoke send [[:send 11 645]]
1 ok     send [[:send 11 [537 645]]]
"""
UNKNOWN_SEND_OVERWRITTEN = """
0 invoke send [[:send 1 20]]
0 info   send [[:send 1 [0 20]]]
1 invoke send [[:send 1 21]]
1 ok     send [[:send 1 [0 21]]]
1 invoke poll [[:poll]]
1 ok     poll [[:poll {1 [[0 21]]}]]
"""
ABORTED = """
0 invoke txn [[:send 1 20] [:send 2 30]]
0 fail   txn [[:send 1 20] [:send 2 30]]
1 invoke poll [[:poll]]
1 ok     poll [[:poll {1 [[0 20]]}]]
"""
FAILED = """
0 invoke send [[:send 1 20]]
0 fail   send [[:send 1 20]]
1 invoke poll [[:poll]]
1 ok     poll [[:poll {1 [[0 20]]}]]
"""
NEVER_SENT = """
1 invoke poll [[:poll]]
1 ok     poll [[:poll {1 [[0 20]]}]]
"""
TWICE = """
0 invoke send [[:send 1 20]]
0 ok     send [[:send 1 [0 20]]]
1 invoke poll [[:poll]]
1 ok     poll [[:poll {1 [[0 20] [1 20]]}]]
"""
ELSEWHERE = """
0 invoke send [[:send 1 20]]
0 ok     send [[:send 1 [1 20]]]
1 invoke poll [[:poll]]
1 ok     poll [[:poll {1 [[3 20]]}]]
"""
FIVE_SENT = """
9 invoke txn [[:send 1 20] [:send 1 21] [:send 1 22] [:send 1 23] [:send 1 24]]
9 ok     txn [[:send 1 [0 20]] [:send 1 [1 21]] [:send 1 [2 22]] [:send 1 [3 23]] [:send 1 [4 24]]]
8 invoke poll [[:poll]]
8 ok     poll [[:poll {1 [[0 20] [1 21] [2 22] [3 23] [4 24]]}]]
"""
SKIPS_BETWEEN = f"""{FIVE_SENT}
0 invoke poll [[:poll]]
0 ok     poll [[:poll {{1 [[0 20] [1 21]]}}]]
0 invoke poll [[:poll]]
0 ok     poll [[:poll {{1 [[3 23]]}}]]
"""
SKIPS_INSIDE = f"""{FIVE_SENT}
0 invoke txn [[:poll] [:poll]]
0 ok     txn [[:poll {{1 [[0 20]]}}] [:poll {{1 [[2 22]]}}]]
"""
GOES_BACK = f"""{FIVE_SENT}
0 invoke poll [[:poll]]
0 ok     poll [[:poll {{1 [[0 20] [1 21] [2 22]]}}]]
0 invoke poll [[:poll]]
0 ok     poll [[:poll {{1 [[1 21] [2 22] [3 23]]}}]]
"""
GOES_BACK_INSIDE = f"""{FIVE_SENT}
0 invoke poll [[:poll]]
0 ok     poll [[:poll {{1 [[2 22] [0 20]]}}]]
"""
ASSIGNED_BETWEEN = SKIPS_BETWEEN.replace(
    "0 invoke poll [[:poll]]\n0 ok     poll [[:poll {1 [[3",
    "0 invoke assign [2]\n0 ok assign [2]\n0 invoke poll [[:poll]]\n0 ok     poll [[:poll {1 [[3",
)
REBALANCED_BETWEEN = SKIPS_BETWEEN.replace("[[3 23]]}]]", "[[3 23]]}]] :rebalance-log [{:type :assigned :keys [1]}]")
SUBSCRIBED_WITHOUT_A_LOG = SKIPS_BETWEEN.replace(
    "0 invoke poll", "0 invoke subscribe [1]\n0 ok subscribe [1]\n0 invoke poll", 1
)
REWOUND_AFTER_ABORT = f"""{FIVE_SENT}
0 invoke txn [[:poll]]
0 ok     txn [[:poll {{1 [[0 20]]}}]]
0 invoke txn [[:poll]]
0 fail   txn [[:poll {{1 [[1 21] [2 22]]}}]]
0 invoke txn [[:poll]]
0 info   txn [[:poll {{1 [[1 21] [2 22]]}}]]
0 invoke txn [[:poll]]
0 ok     txn [[:poll {{1 [[1 21] [2 22]]}}]]
"""
FINAL_READ_MISSES = f"""{FIVE_SENT}
0 invoke assign [1] :seek-to-beginning? true
0 ok     assign [1] :seek-to-beginning? true
0 invoke poll [[:poll]]
0 ok     poll [[:poll {{1 [[1 21] [2 22] [3 23] [4 24]]}}]]
"""
SENT_DOWNWARDS = """
0 invoke send [[:send 1 20]]
0 ok     send [[:send 1 [3 20]]]
0 invoke send [[:send 1 21]]
0 ok     send [[:send 1 [1 21]]]
1 invoke poll [[:poll]]
1 ok     poll [[:poll {1 [[1 21] [3 20]]}]]
"""
SENT_DOWNWARDS_INSIDE = """
0 invoke txn [[:send 1 20] [:send 1 21]]
0 ok     txn [[:send 1 [3 20]] [:send 1 [1 21]]]
1 invoke poll [[:poll]]
1 ok     poll [[:poll {1 [[1 21] [3 20]]}]]
"""
READS_ITS_OWN = """
0 invoke txn [[:send 1 20] [:poll]]
0 ok     txn [[:send 1 [0 20]] [:poll {1 [[0 20]]}]]
"""
NEVER_READ = """
0 invoke send [[:send 1 20]]
0 ok     send [[:send 1 [0 20]]]
1 invoke poll [[:poll]]
1 ok     poll [[:poll {}]]
"""
EACH_READS_THE_OTHER = """
0 invoke txn [[:send 1 20] [:poll]]
1 invoke txn [[:send 2 30] [:poll]]
0 ok     txn [[:send 1 [0 20]] [:poll {2 [[0 30]]}]]
1 ok     txn [[:send 2 [0 30]] [:poll {1 [[0 20]]}]]
"""
EACH_WRITES_BEFORE_THE_OTHER = """
0 invoke txn [[:send 1 20] [:send 2 20]]
1 invoke txn [[:send 1 30] [:send 2 30]]
0 ok     txn [[:send 1 [0 20]] [:send 2 [1 20]]]
1 ok     txn [[:send 1 [1 30]] [:send 2 [0 30]]]
2 invoke poll [[:poll]]
2 ok     poll [[:poll {1 [[0 20] [1 30]] 2 [[0 30] [1 20]]}]]
"""

CASES = {
    "lost-write": (LOST, {"lost-write"}),
    "lost-write of an overwritten record": (OVERWRITTEN, {"lost-write", "divergent-offset"}),
    "lost-write in a transaction, committed as a read proves": (HALF_A_TRANSACTION, {"lost-write", "torn-transaction"}),
    "no lost-write, because no read proves that the transaction committed": (UNPROVED_TRANSACTION, set()),
    "inconsistent-offsets": (TWO_ACKNOWLEDGED_AT_ONE_OFFSET, {"divergent-offset", "unseen"}),
    "no divergent-offset, because the outcome of one send is unknown": (UNKNOWN_SEND_OVERWRITTEN, set()),
    "G1a": (ABORTED, {"aborted-read"}),
    "G1a without a transaction": (FAILED, {"aborted-read"}),
    "a value that was never sent": (NEVER_SENT, {"phantom-read"}),
    "duplicate": (TWICE, {"duplicate"}),
    "duplicate at another offset than the acknowledged one": (ELSEWHERE, {"offset-mismatch"}),
    "poll-skip": (SKIPS_BETWEEN, {"poll-skip"}),
    "int-poll-skip": (SKIPS_INSIDE, {"poll-skip", "lost-write"}),
    "nonmonotonic-poll": (GOES_BACK, {"poll-regress"}),
    "int-nonmonotonic-poll": (GOES_BACK_INSIDE, {"poll-regress"}),
    "no poll-skip after an assign": (ASSIGNED_BETWEEN, set()),
    "no poll-skip after a rebalance": (REBALANCED_BETWEEN, set()),
    "no poll-skip after a subscribe": (SUBSCRIBED_WITHOUT_A_LOG, set()),
    "no nonmonotonic-poll after transactions without a commit": (REWOUND_AFTER_ABORT, set()),
    "a final read that misses a record": (FINAL_READ_MISSES, {"lost-write", "poll-skip"}),
    "nonmonotonic-send": (SENT_DOWNWARDS, {"producer-order", "realtime-order"}),
    "int-nonmonotonic-send": (SENT_DOWNWARDS_INSIDE, {"producer-order"}),
    "precommitted-read": (READS_ITS_OWN, {"precommitted-read"}),
    "unseen": (NEVER_READ, {"unseen"}),
    "G1c": (EACH_READS_THE_OTHER, {"cycle-G1c"}),
    "G0, which Kafka permits": (EACH_WRITES_BEFORE_THE_OTHER, set()),
}
"""Histories, each with the names of the anomalies that the checks must find in it, except permitted ones.

The key of a history describes it. It has the name that Jepsen gives to the anomaly, if there is one.
"""
