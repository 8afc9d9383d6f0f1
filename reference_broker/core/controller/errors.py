"""The one way in which a decision of the controller refuses."""

from reference_broker.protocol.errors import ErrorCode


class ControllerError(Exception):
    """A request that cannot be carried out; code and message go into its answer."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message
