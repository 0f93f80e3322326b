"""The automation of conversations: workflows that run in them.

`interpreter` carries out a workflow, `decide` joins it with the conversation's own rules, `answers` checks what the
contact answers to a step, `lookup` finds workflows in the store, and `timers` wakes those whose wait is over.
"""
