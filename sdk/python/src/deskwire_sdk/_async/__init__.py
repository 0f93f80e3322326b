"""The modules that exist in an asynchronous and in a synchronous form."""
