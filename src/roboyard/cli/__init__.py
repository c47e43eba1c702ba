"""The ``roboyard`` command: one small module in ``verbs`` for each verb, which imports what it needs when called."""
