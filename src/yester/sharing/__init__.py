"""Memory that is shared: with the owner's other machines, over a folder, ssh or git."""
