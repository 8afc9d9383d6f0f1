"""Requirements of SCRAM credentials: their changes and description (KIP-554).

A script changes only the credentials of users that no other script names, and deletes them at the end. A broker without
the API is not judged.
"""

from typing import Any, Final

from hypothesis import strategies as st

from conformance.requirements import sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.model.scram import ITERATIONS_MAX, ITERATIONS_MIN
from conformance.sequential.steps import (
    AlterScramCredential,
    ApiKey,
    DescribeScramCredentials,
    Eventually,
    RawRequest,
    ScramMechanism,
)
from conformance.sequential.strategies import many, script

_USER: Final = "trial-user"
_CHANGES: Final = st.builds(
    AlterScramCredential,
    st.none() | st.sampled_from([ITERATIONS_MIN, 5_000, ITERATIONS_MAX, ITERATIONS_MIN - 1, ITERATIONS_MAX + 1]),
    st.sampled_from(ScramMechanism),
).map(lambda change: (change, Eventually(DescribeScramCredentials())))
_DELETED: Final = tuple(AlterScramCredential(None, mechanism) for mechanism in ScramMechanism)


def _altered(error: str, *changes: tuple[str, int]) -> RawRequest:
    """Return a request that changes credentials and must be rejected with `error`.

    :param changes: for each change, the user and the number of the mechanism.
    """
    upsertions: tuple[dict[str, Any], ...] = tuple(
        {"name": user, "mechanism": mechanism, "iterations": ITERATIONS_MIN, "salt": b"s", "salted_password": b"p"}
        for user, mechanism in changes
    )
    return RawRequest(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, {"deletions": (), "upsertions": upsertions}, (error,))


REQUIREMENTS: Final = (
    Requirement(
        id="security/scram-credentials-are-described",
        level=Level.MUST,
        text="AlterUserScramCredentials sets or deletes the credential of one mechanism of a user, and leaves the "
        "credential of the other mechanism. It returns RESOURCE_NOT_FOUND if there is no credential to delete, and "
        "UNACCEPTABLE_CREDENTIAL for fewer than 4096 or more than 16384 iterations. DescribeUserScramCredentials "
        "returns each mechanism of the user with its iterations, or RESOURCE_NOT_FOUND.",
        sources=(sources.KIP_554,),
        check=sequential(
            script(
                DescribeScramCredentials(),
                *(AlterScramCredential(ITERATIONS_MIN + mechanism, mechanism) for mechanism in ScramMechanism),
                Eventually(DescribeScramCredentials()),
                many(_CHANGES, at_most=4),
                DescribeScramCredentials("trial-other"),
                *_DELETED,
                Eventually(DescribeScramCredentials()),
            ),
            judges("error", of=AlterScramCredential) | judges("error", "credentials", of=DescribeScramCredentials),
            cost=3,
        ),
    ),
    Requirement(
        id="security/bad-scram-credential-is-rejected",
        level=Level.MUST,
        text="AlterUserScramCredentials returns UNSUPPORTED_SASL_MECHANISM for an unknown mechanism, "
        "UNACCEPTABLE_CREDENTIAL for an empty user name, and DUPLICATE_RESOURCE for two changes of one credential, and "
        "changes nothing. DescribeUserScramCredentials returns DUPLICATE_RESOURCE for a user that is requested twice.",
        sources=(sources.KIP_554,),
        check=sequential(
            script(
                _altered("UNSUPPORTED_SASL_MECHANISM", (_USER, 3)),
                _altered("UNACCEPTABLE_CREDENTIAL", ("", 1)),
                _altered("DUPLICATE_RESOURCE", (_USER, 1), (_USER, 1)),
                DescribeScramCredentials(),
                RawRequest(
                    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
                    {"users": ({"name": _USER}, {"name": _USER})},
                    ("NONE", "DUPLICATE_RESOURCE"),  # of the whole request, and of the user
                ),
            ),
            judges("errors", of=RawRequest) | judges("error", "credentials", of=DescribeScramCredentials),
        ),
    ),
)
