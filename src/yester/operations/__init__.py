"""What a user can do with the memory, once for all faces: a request in, a result out.

request    what requests are made of, how they are read, checked and described
items, search             what was recorded, as rows of an answer; what agents were shown
memories                what was remembered for its own sake, and how it changes
context                 what an agent is told
stats                   numbers
projects, settings      what the user has named and set
"""
