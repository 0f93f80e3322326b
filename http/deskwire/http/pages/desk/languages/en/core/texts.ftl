name = Deskwire
close = Close
cancel = Cancel
save = Save
tryAgain = Try again
moduleFailed = This part of the desk couldn't be loaded. Check your connection, and try again.
copy = Copy
copied = Copied
notices = Notices
skip = Skip to the conversation
noTitle = No subject
you = You
visitor = Visitor { $id }
# $label, $keys
withKeys = { $keys ->
    [none] { $label }
   *[other] { $label } ({ $keys })
}
request = Request { $request }
now = now
minutes = { NUMBER($n) }m
hours = { NUMBER($n) }h
days = { NUMBER($n) }d
unanswered = The service does not answer.
outcomeUnknown = It was sent over 23 hours ago, so its outcome can no longer be determined.
today = Today
yesterday = Yesterday

views-label = Views
views-open = Navigation
views-mine = Mine
views-mentions = Mentions
views-following = Following
views-waiting = Waiting
views-unassigned = Unassigned
views-team = Teams
views-snoozed = Snoozed
views-all = All
views-saved = Saved view
views-search = Search results

countMore = { NUMBER($n) }+

side-actions = Search or do…

connection-gapBanner = You were offline for over 7 days, so everything was reloaded.

list-label = Conversations
list-search = Search
list-searchPlaceholder = Search conversations, contacts, tickets
list-clear = Clear search
list-start = New conversation
list-waits = { $how ->
    [none] waiting
   *[other] waiting { $how }
}
list-draft = Draft
list-mentioned = mentions you
list-writes = typing
list-visitor = visitor
list-snoozed = until { $until }
list-fresh = { NUMBER($n) } new
list-selected = { NUMBER($n) } selected
list-selectNone = Clear selection
list-loading = Loading conversations
list-failed = Couldn't load the conversations
list-selectRow = Select
list-unreadRow = Unread
list-notListed = No conversation to select.
list-revealed = { $name } was scrolled out of view. Press the key again.

actions-notHere = No conversation is open or selected.
actions-notAllowed = Your role here is read-only.
actions-unplaced = Your text was not entered, because no field opened: “{ $text }”

thread-none = No conversation is open
thread-noneText = Select one with j and k, and open it with Enter.
thread-bot = Bot
thread-status-OPEN = open
thread-status-PENDING = pending
thread-status-CLOSED = closed

commands-assignMe = Assign to me
commands-assign = Assign to…
commands-close = Close
commands-noAnswer = No answer needed
commands-pending = Set to pending
commands-snooze = Snooze
commands-tag = Tag

signIn-offline = The service is not responding. Try again in a moment.
signIn-starting = Opening the desk
signIn-crashed = Something went wrong
signIn-crashedText = Your drafts are kept. Reload the page. If it keeps happening, send us this:
signIn-reload = Reload the page
