"""The child process of a served model: loads its sessions and runs loads."""
