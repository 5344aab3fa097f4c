"""What apps embed: every value is randomised on the device before anything else happens to it."""

from hubbub.client.privatizing import privatize

__all__ = ["privatize"]
