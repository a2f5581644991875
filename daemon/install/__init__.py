"""What `shapeupd install` changes beside the hooks folder itself. Source: cli §2 `install`, design §6."""
