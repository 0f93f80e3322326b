"""The reference of the program, made from the code that it describes."""
