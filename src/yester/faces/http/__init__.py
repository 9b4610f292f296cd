"""The HTTP API on the loopback interface and the viewer's files. To be read in this order:

problem    what is answered when something is wrong
shapes     parameters and answers: what is validated is what the OpenAPI document says
given      a query string, a path or a body → parameters
memory     the store of a thread, the settings, who answers a question
rows       items as rows of an index, or whole
search, timeline, context, items, sessions, memories, ledger, figures, settings, login
stream     what is new, as it happens
table      every endpoint: one row each
openapi, manual   the table as a document for programs, for a model, for people
viewer     the static files
guard      Host, Origin, token, sizes and times: nothing gets past it
app        all of it together
server     the socket, the process
"""
