"""What a user can do with the memory, once for all faces: a request in, a result out."""
