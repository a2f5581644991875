"""What `shapeupd check` judges by, and the forms it answers in. Source: cli §2."""
