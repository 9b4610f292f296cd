"""The HTTP API on the loopback interface and the viewer's files. To be read in this order:

request      a query string, a path or a body → the request of an operation; or what is wrong
table        every endpoint: a row each, with the operation behind it; the same as a document for
             programs, and for a model
stream       what is new, as it happens
login        the token, one-time codes and bearers; where the server is
guard        Host, Origin, token, sizes and times: nothing gets past it
app          all of it together, and the viewer's files
team         the same for many users of one database
server       the socket, the process

What is asked and answered stands in `yester.operations`.
"""
