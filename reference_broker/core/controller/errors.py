"""Error of a request to the controller."""

from reference_broker.protocol.errors import ErrorCode


class ControllerError(Exception):
    """A rejection of a request; the response contains its code and message."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
