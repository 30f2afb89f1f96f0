"""Every error of our own.

    MonkeyCodeError
    ├── ConfigError            settings that cannot be used; names the setting
    ├── StorageError           a place where suggestions are kept is out of order; costs nothing else
    ├── SupersededError        a newer ask took this one's place
    ├── ModelError             a model file that is missing, broken or cannot be fetched
    │   └── DownloadError      no source gave the file
    └── EngineError            the engine gave no (whole) answer
        ├── EngineUnavailableError   it cannot run at all: not installed, died at load
        │   ├── ModelMissingError    no model file; may offer one that can be fetched
        │   ├── EngineFaultError     it is there, and failed at this request
        │   └── StaysHereError       it is elsewhere, and the text must not leave this machine
        ├── EngineBusyError          it is loading or asks us to wait; worth trying again soon
        ├── EngineRefusedError       it understood and said no (4xx): trying again is pointless
        ├── ContextOverflowError     the prompt is longer than the model's window
        └── StreamBrokenError        the answer was cut off in the middle

A message is one sentence in the user's words; a remedy says what mends it.
Neither ever holds source text, a key or a password.
"""


class MonkeyCodeError(Exception):
    """Base of all our errors."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        # File names may hold bytes that are no text, and what is said must be text.
        self.message = message.encode("utf-8", "replace").decode()
        self.remedy = remedy
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class ConfigError(MonkeyCodeError):
    """A setting cannot be used."""


class SupersededError(MonkeyCodeError):
    """A newer ask took the turn; the caller answers null."""

    def __init__(self) -> None:
        super().__init__("A newer request took over.")


class StorageError(MonkeyCodeError):
    """Suggestions cannot be kept or found at some place."""


class ModelError(MonkeyCodeError):
    """A model file is missing or broken."""


class DownloadError(ModelError):
    """No source could deliver the model file."""


class EngineError(MonkeyCodeError):
    """The engine gave no usable answer."""


class EngineUnavailableError(EngineError):
    """The engine cannot run: not installed, no model, or it dies when it loads."""


class ModelMissingError(EngineUnavailableError):
    """There is no model file to load."""

    def __init__(self, message: str, *, remedy: str = "", offer: str = "", offer_text: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.offer = offer
        """Catalogue name of a model that can be fetched; empty: nothing to offer."""
        self.offer_text = offer_text
        """A question for the user: what would be fetched and how big it is."""


class EngineFaultError(EngineUnavailableError):
    """The engine is there and says that it failed; another request may fare better."""


class StaysHereError(EngineUnavailableError):
    """The engine is elsewhere, and the text must not leave this machine."""

    def __init__(self, elsewhere: str) -> None:
        super().__init__(
            f"An ignore file keeps this text on this machine, and {elsewhere}.",
            remedy="Set `engine` to `local`, or an endpoint at 127.0.0.1; or change the level in the ignore file.",
        )


class EngineBusyError(EngineError):
    """The engine is still loading or asks us to wait."""

    def __init__(self, message: str, *, remedy: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after_s = retry_after_s


class EngineRefusedError(EngineError):
    """The engine understood the request and refused it."""


class ContextOverflowError(EngineRefusedError):
    """The prompt and the answer together do not fit the model's window."""

    def __init__(self, message: str, *, limit_tokens: int | None = None, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.limit_tokens = limit_tokens


class StreamBrokenError(EngineError):
    """The stream ended before the answer was complete."""
