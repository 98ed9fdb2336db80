"""What a run would take, computed before anything is built: memory, time, text, disk, commands."""
