"""The automation of conversations: workflows that run in them.

`interpreter` carries out a workflow, `decide` combines it with the conversation's own rules, `answers` checks the contact's
answers to steps, and `lookup` finds workflows in the store. The timer of waiting workflows is in `conversations.timers`.
"""
