"""The commands of the program; `roboyard.cli.app` imports a module when the command line names its command."""
