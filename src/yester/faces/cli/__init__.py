"""The command line: `yester COMMAND`, one module per group of commands."""
