"""This process: its folders, what it may do, its children, and how Python runs in it."""
