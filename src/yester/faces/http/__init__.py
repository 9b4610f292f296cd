"""The HTTP API on the loopback interface and the viewer's files. To be read in this order:

problem    what is answered when something is wrong
request    a query string, a path or a body → the request of an operation
table      every endpoint: a row each, with the operation behind it
openapi, manual   the table as a document for programs, and for a model
doctor     what the doctor says, as an answer
stream     what is new, as it happens
viewer     the static files
login      the token, one-time codes and bearers; where the server is
guard      Host, Origin, token, sizes and times: nothing gets past it
app        all of it together
server     the socket, the process

What is asked and answered stands in `yester.operations`.
"""
