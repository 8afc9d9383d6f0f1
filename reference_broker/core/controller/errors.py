"""Error of a request to the controller."""

from reference_broker.protocol.errors import ErrorCode


class ControllerError(Exception):
    """A rejected request; code and message become part of the response."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
