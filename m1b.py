M="yester.memories."
MAP={(M+"disk",a):(M+"disk",b) for a,b in dict(contents="read_file",replaced="replace_file",appended="append_to_file",removed="remove_file",folder="make_folder").items()}
