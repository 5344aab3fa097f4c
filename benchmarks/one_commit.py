"""`hubbub serve` as it would be with a commit for each batch: what does committing many at once gain?"""

from __future__ import annotations

from hubbub.collector import writer
from hubbub.shared.command_line import main

writer.MAX_GROUP = 1  # here, and not below, so that processes that import this module anew do it too

if __name__ == "__main__":
    main()
