"""What a run will cost, computed before anything is built: memory, time, text, disk, commands."""
