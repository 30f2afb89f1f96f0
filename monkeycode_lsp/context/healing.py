"""Where the text before the cursor is cut so that no token is left half said (pure).

A model that reads `pri` as a token of its own seldom goes on with `nt`, and one that reads four blanks of an indentation
seldom goes on with a word.  What is cut off here is not sent: the answer must begin with it, and it is not given back.
The beginning of a word is cut off whole, with the blank before it, so that the prompt is the same from that blank to the word's
last letter and nothing is read anew.
"""

from __future__ import annotations

import re

_LONGEST = 32
"""Characters that the model has to repeat at most: each token of them takes as long as one of the answer."""
_WORD = "0-9A-Za-z_\u00c0-\u052f"
"""Latin, Greek and Cyrillic: words of other scripts are written without blanks, and their tokens are short."""
_UNSAID = re.compile(rf"[ \t]?(?<![{_WORD}])(?!\d)[{_WORD}]{{1,{_LONGEST}}}\Z|(?<![ \t])[ \t]{{1,{_LONGEST}}}\Z")
_REACH = _LONGEST + 2


def split(prefix: str) -> tuple[str, str]:
    """What is sent of the text before the cursor, and what the answer must begin with."""
    reach = prefix[-_REACH:]
    found = _UNSAID.search(reach)
    if found is None or found.start() == 0:  # a model cannot be asked nothing, and what is longer has no good place to be cut
        return prefix, ""
    at = len(prefix) - len(reach) + found.start()
    return prefix[:at], prefix[at:]
