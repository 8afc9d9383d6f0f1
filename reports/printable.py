"""What brokers answer is shown to people, and may hold anything."""


def printable(text: str) -> str:
    r"""The text with control characters written as `\x1b`: a terminal obeys them, and XML 1.0 cannot hold them."""
    return "".join(c if c in "\n\t" or _is_plain(c) else f"\\x{ord(c):02x}" for c in text)


def _is_plain(character: str) -> bool:
    return " " <= character < "\x7f" or (character >= "\xa0" and character not in "\ufffe\uffff")
