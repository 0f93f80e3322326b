one = Ticket
title = Title
description = Description
status = Status
priority = Priority
type = Type
assignee = Assigned to
user = Person
team = Team
tags = Tags
snoozed = Snoozed until
snooze = Snooze
wake = Unsnooze
conversation = Conversation
contact = Contact
updated = Changed
createdAt = Created
lastActivity = Last activity
id = ID
unassigned = Unassigned
noTeam = No team
anyAssignee = Any assignee
anyStatus = Any status
anyPriority = Any priority
anyTag = Any tag
sort = Order
find = Find tickets

statuses-OPEN = Open
statuses-IN_PROGRESS = In progress
statuses-DONE = Done

priorities-LOW = Low
priorities-MEDIUM = Medium
priorities-HIGH = High
priorities-URGENT = Urgent

sorts-_ = Newest first
sorts-updatedAt = Last changed
sorts-priority = Most urgent
sorts-lastActivity = Last activity

durations-3600 = for an hour
durations-86400 = for a day
durations-604800 = for a week
durations-0 = Unsnooze

until = until { $at }
create = New ticket
createIt = Create
conversationHint = The ID of the conversation that the ticket is about, if any. The ticket takes its contact.
none = No tickets yet
noneText = Create one here, or from a conversation.
filtered = No tickets match these filters
selected = { $n ->
    [one] { $n } ticket selected
   *[other] { $n } tickets selected
}
giveUser = Assign to a person…
giveTeam = Assign to a team…
setPriority = Set priority…
bulkDone = { $n ->
    [one] { $n } ticket changed
   *[other] { $n } tickets changed
}
bulkSame = { NUMBER($n) } unchanged
bulkGone = { NUMBER($n) } deleted
bulkFailed = Couldn't change the tickets: { $why }
fields = Ticket
about = Related
activity = Activity
noActivity = No changes yet.
openConversation = Open the conversation
openContact = Open the contact
saved = Ticket saved.
unchanged = Nothing to change.
deleted = Ticket deleted.
deleteOne = Delete this ticket
meantime = { $who } changed this ticket while you were editing. Your fields are unchanged.
compare = Compare
goneMeantime = { $who } deleted this ticket. Your text stays here until you leave.
losesTicket = The ticket “{ $title }”
losesLog = Its activity log
staysConversation = Its conversation and its contact
didCreate = created it
didChange = changed it
createHere = New ticket from this conversation
created = Ticket created.
open = Open the ticket
linkOne = Link a ticket…
linkHere = Link a ticket
unlink = Unlink
undo = Undo
aboutContact = The ticket is linked to this conversation and about { $name }.
noTicket = No ticket.
others = Other tickets of this contact
noneOfContact = This contact has no tickets. Type to search all.
hasConversation = has a conversation
linkedElsewhere = This ticket is linked to another conversation. Unlink it there first.
linked = Linked to “{ $title }”.
unlinked = “{ $title }” is no longer linked.
failed = Couldn't change the ticket: { $why }
linkConversation = Link a conversation
noConversation = No conversation is linked.
findConversation = Search conversations
noConversations = No matching conversations.
alreadyLinked = has a ticket
hasTicket = This conversation has another ticket. Unlink that first.
