"""Does a text that was made for one place still agree with another?  (pure)

The other place is the same one a little later: some of the text was typed there, or taken word by word,
and the editor may have closed brackets and quotes by itself.
"""
