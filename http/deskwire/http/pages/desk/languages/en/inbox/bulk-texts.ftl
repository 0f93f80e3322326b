selectAll = { $total ->
    [none] Select all in this view
   *[other] Select all { $total } in this view
}
allSelected = { $total ->
    [none] All in this view
   *[other] All { $total } in this view
}
notForAll = This works for selected conversations only, not for all of a view.
tagsOfAll = Tags of all in this view
failed = Couldn't change all conversations: { $why }

doing-close = { $n ->
    [one] Closing { $n } conversation
   *[other] Closing { $n } conversations
}
doing-reopen = { $n ->
    [one] Reopening { $n } conversation
   *[other] Reopening { $n } conversations
}
doing-pending = { $n ->
    [one] Setting { $n } conversation to pending
   *[other] Setting { $n } conversations to pending
}
doing-assign = { $n ->
    [one] Assigning { $n } conversation
   *[other] Assigning { $n } conversations
}
doing-unassign = { $n ->
    [one] Unassigning { $n } conversation
   *[other] Unassigning { $n } conversations
}
doing-tag = { $n ->
    [one] Changing the tags of { $n } conversation
   *[other] Changing the tags of { $n } conversations
}
doing-snooze = { $n ->
    [one] Snoozing { $n } conversation
   *[other] Snoozing { $n } conversations
}
doing-wake = { $n ->
    [one] Unsnoozing { $n } conversation
   *[other] Unsnoozing { $n } conversations
}
doing-archive = { $n ->
    [one] Archiving { $n } conversation
   *[other] Archiving { $n } conversations
}
doing-unarchive = { $n ->
    [one] Unarchiving { $n } conversation
   *[other] Unarchiving { $n } conversations
}
doing-noAnswerNeeded = { $n ->
    [one] Marking { $n } conversation as needing no answer
   *[other] Marking { $n } conversations as needing no answer
}
doing-waitAgain = { $n ->
    [one] Marking { $n } conversation as waiting for an answer
   *[other] Marking { $n } conversations as waiting for an answer
}
doing-unread = { $n ->
    [one] Marking { $n } conversation unread
   *[other] Marking { $n } conversations unread
}
doing-follow = { $n ->
    [one] Following { $n } conversation
   *[other] Following { $n } conversations
}
doing-unfollow = { $n ->
    [one] Unfollowing { $n } conversation
   *[other] Unfollowing { $n } conversations
}

what-close = { $n ->
    [one] Close { $n } conversation
   *[other] Close { $n } conversations
}
what-reopen = { $n ->
    [one] Reopen { $n } conversation
   *[other] Reopen { $n } conversations
}
what-pending = { $n ->
    [one] Set { $n } conversation to pending
   *[other] Set { $n } conversations to pending
}
what-assign = { $n ->
    [one] Assign { $n } conversation
   *[other] Assign { $n } conversations
}
what-unassign = { $n ->
    [one] Unassign { $n } conversation
   *[other] Unassign { $n } conversations
}
what-tag = { $n ->
    [one] Change the tags of { $n } conversation
   *[other] Change the tags of { $n } conversations
}
what-snooze = { $n ->
    [one] Snooze { $n } conversation
   *[other] Snooze { $n } conversations
}
what-wake = { $n ->
    [one] Unsnooze { $n } conversation
   *[other] Unsnooze { $n } conversations
}
what-archive = { $n ->
    [one] Archive { $n } conversation
   *[other] Archive { $n } conversations
}
what-unarchive = { $n ->
    [one] Unarchive { $n } conversation
   *[other] Unarchive { $n } conversations
}
what-noAnswerNeeded = { $n ->
    [one] Mark { $n } conversation as needing no answer
   *[other] Mark { $n } conversations as needing no answer
}
what-waitAgain = { $n ->
    [one] Mark { $n } conversation as waiting for an answer
   *[other] Mark { $n } conversations as waiting for an answer
}
what-unread = { $n ->
    [one] Mark { $n } conversation unread
   *[other] Mark { $n } conversations unread
}
what-follow = { $n ->
    [one] Follow { $n } conversation
   *[other] Follow { $n } conversations
}
what-unfollow = { $n ->
    [one] Stop following { $n } conversation
   *[other] Stop following { $n } conversations
}

done-close = closed
done-reopen = reopened
done-pending = set to pending
done-assign = assigned
done-unassign = unassigned
done-tag = with changed tags
done-snooze = snoozed
done-wake = no longer snoozed
done-archive = archived
done-unarchive = no longer archived
done-noAnswerNeeded = marked as needing no answer
done-waitAgain = marked as waiting for an answer
done-unread = marked unread
done-follow = followed
done-unfollow = no longer followed

undoing = Undoing “{ $what }”
progress = { NUMBER($n) } done
count = { NUMBER($n) }
skipped = { NUMBER($n) } skipped
undone = { NUMBER($n) } restored
kept = { NUMBER($n) } not restored
left = { NUMBER($n) } left as they were
cancelled = Cancelled
why = Why
undo = Undo
cancel = Cancel
dismiss = Dismiss
bar = Bulk change
example = Show one

stopped-permission_lost = Stopped: you no longer have the permission for this
stopped-assignee_gone = Stopped: the assignee is no longer there
stopped-snooze_ended = Stopped: the end of the snooze has passed

stop = Stopped

reasons-unchanged = Nothing to change
reasons-conversation_closed = Closed
reasons-conversation_deleted = Deleted in the meantime
reasons-tag_limit_reached = Would have more than 20 tags
reasons-conversation_merged = Merged into another conversation
reasons-newer_message = The customer wrote in the meantime
reasons-no_contact_message = The customer has written nothing
reasons-changed_since = Changed since
reasons-assignee_gone = The former assignee is no longer there
reasons-internal_error = Something went wrong in the service
