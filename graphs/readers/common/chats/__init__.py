"""Chats of a model with a user and tools, as lists of messages or as items of the Responses API."""
