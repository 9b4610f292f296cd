"""What a user can do with the memory, once for all faces: a request in, a result out.

request    what requests are made of, how they are read, checked and described
items, sessions, search   what was recorded, as rows of an answer
memory_rows, memories   what was remembered for its own sake, and how it changes
context, preview        what an agent is told
ledger, stats           what agents were shown and what came of it; numbers
projects, settings      what the user has named and set
"""
