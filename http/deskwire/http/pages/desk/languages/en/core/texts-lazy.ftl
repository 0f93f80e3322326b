unknownClient = Unknown client
back = Back
show = Show

list-empty-mine = You're all caught up
list-empty-waiting = No one is waiting
list-empty-unassigned = Everything is assigned
list-empty-mentions = No mentions yet
list-empty-following = You don't follow any conversations
list-empty-team = No conversations for this team
list-empty-view = No conversations in this view
list-empty-snoozed = Nothing is snoozed
list-empty-all = No conversations yet
list-emptyText-mine = Conversations assigned to you show up here.
list-emptyText-waiting = No customer is waiting for a reply.
list-emptyText-mentions = Conversations in which a colleague mentions you in a note show up here.
list-emptyText-following = Press f in a conversation to follow it. Mentions make you follow it, too.
list-emptyText-unassigned = New conversations show up here.
list-emptyText-team = Conversations assigned to this team show up here.
list-emptyText-view = Conversations show up here when they match its filter.
list-emptyText-snoozed = Snoozed conversations return at their time, or when the customer writes.
list-emptyText-all = They show up here once you or your backend start one.
list-statuses-all = Any status
list-statuses-active = Open and pending
list-statuses-OPEN = Open
list-statuses-PENDING = Pending
list-statuses-CLOSED = Closed
list-statuses-archived = Archived
list-sorts-activity = Newest activity
list-sorts-waiting = Longest waiting
list-sorts-created = Newest first
list-unread = Unread only
list-readAll = Mark all as read
list-noneYet = Nothing found yet
list-noneYetText = Many conversations were examined, and there are more.
list-keepLooking = Keep looking
list-looking = Looking…
list-filtered = No conversations match these filters
list-clearFilters = Clear filters
list-snoozedToo = { $n ->
    [one] { $n } conversation is snoozed.
   *[other] { $n } conversations are snoozed.
}
list-searchFailed = Search failed
list-noneFound = No results for “{ $q }”
list-noneFoundText = Search matches the start of words in subjects, messages, names and tickets.
list-contacts = Contacts
list-tickets = Tickets
list-conversations = Conversations

filter-button = Filter
filter-title = Filter this view
filter-apply = Apply
filter-active = Conditions of this view
filter-any = Any
filter-anyTime = Any time
filter-separated = Separate several by commas.
filter-remove = Remove: { $text }
filter-durations-m = { $n ->
    [one] { $n } minute
   *[other] { $n } minutes
}
filter-durations-h = { $n ->
    [one] { $n } hour
   *[other] { $n } hours
}
filter-durations-d = { $n ->
    [one] { $n } day
   *[other] { $n } days
}
filter-durations-w = { $n ->
    [one] { $n } week
   *[other] { $n } weeks
}
filter-within = in the last { $duration }
filter-before = not in the last { $duration }
filter-atLeast = for at least { $duration }
filter-attributeHint = For example plan:gold. Separate several by commas; all must match. It stays out of the address.
filter-unrated = Not rated
# $from, $to
filter-rating = { $from } to { $to }
filter-priorities-URGENT = Urgent
filter-priorities-HIGH = High
filter-priorities-MEDIUM = Medium
filter-priorities-LOW = Low
filter-fields-tag = With any of these tags
filter-fields-allTags = With all of these tags
filter-fields-withoutTags = Without these tags
filter-fields-activeWithin = Last activity
filter-fields-inactiveFor = No activity
filter-fields-createdWithin = Created
filter-fields-waitingFor = Waiting for a reply
filter-fields-contactAttribute = Attributes of the contact
filter-fields-rating = Rating
filter-fields-priority = Priority of the ticket
filter-fields-assignee = Assignee
filter-chips-assignee = Assignee: { $value }
filter-chips-tag = Tag: { $value }
filter-chips-allTags = All tags: { $value }
filter-chips-withoutTags = Without: { $value }
filter-chips-activeWithin = Active in the last { $value }
filter-chips-inactiveFor = Not active for { $value }
filter-chips-createdWithin = Created in the last { $value }
filter-chips-createdSince = Created since { $value }
filter-chips-createdUntil = Created before { $value }
filter-chips-waitingFor = Waiting { $value }
filter-chips-contactAttribute = Contact: { $value }
filter-chips-team = Assignee: { $value }
filter-chips-waiting = { $value ->
    [true] Waiting for a reply
   *[other] Not waiting
}
filter-chips-snoozed = Snoozed
filter-chips-following = { $value ->
    [true] You follow it
   *[other] You don't follow it
}
filter-chips-mentioned = { $value ->
    [true] Mentions you
   *[other] Doesn't mention you
}
filter-chips-channel = Channel: { $value }
filter-chips-priority = Priority: { $value }
filter-chips-rating = Rating: { $value }
filter-chips-rated = { $value ->
    [true] Rated
   *[other] Not rated
}

side-project = Project
side-settings = Settings
side-notifications = Notifications
side-shortcuts = Keyboard shortcuts
side-signOut = Sign out
side-me = You and your settings
side-status = Connection

connection-connecting = Connecting…
connection-live = Live
connection-reconnecting = Reconnecting…
connection-offline = Offline
connection-silent = Not responding
connection-gap = Reloading…
connection-ended = Disconnected
connection-offlineSince = You have been offline since { $since }. Anything you send is kept here until you're back online.
connection-brokenSince = No connection to the service since { $since }. Nothing is lost: anything you send is kept here until you're back online.
connection-kept = { $n ->
    [one] { $n } message or change is kept here.
   *[other] { $n } messages and changes are kept here.
}
connection-limited = Too many requests. Retrying in { NUMBER($s) } s. Nothing is lost.
connection-endedBanner = The service closed this connection.
connection-ended_-permission_lost = You no longer have access to this project. Ask an administrator.
connection-ended_-second_factor_required = Your organisation requires a second factor. Set one up in your account to continue.
connection-ended_-too_many_streams = You have the desk open in too many places. Close some, and try again.
connection-cursor = Newest event
connection-lastEvent = Last event
connection-caughtUp = Missed events
connection-events = { NUMBER($n) }
connection-waitingToSend = Unsent
connection-retry = Try now
connection-nothing = –

thread-loading = Loading the conversation
thread-failed = Couldn't load the conversation
thread-label = Messages
thread-noAnswer = No answer needed
# $who, $at
thread-noAnswerBy = { $who } marked this as needing no answer · { $at }
thread-empty = No messages yet
thread-older = Loading older messages
thread-begin = Start of the conversation
thread-note = Note · only agents see it
thread-system = System
thread-toEnd = Newest messages
thread-newBelow = { $n ->
    [one] { $n } new message
   *[other] { $n } new messages
}
thread-copyMessageLink = Copy link
thread-linkLoading = Loading the linked message…
thread-linkGone = The linked message was deleted, or never existed.
thread-linkFailed = Couldn't load the linked message: { $why }
thread-redacted = Redacted
thread-redact = Redact…
thread-deleteMessage = Delete…
thread-messageActions = Actions for this message
thread-showAll = Show more
thread-showLess = Show less
thread-attachment = Attachment { $name }
thread-view = { $names } is viewing
thread-write = { $names } is typing
thread-writeMany = { $names } are typing
thread-viewMany = { $names } are viewing
thread-writes = { $name ->
    [none] Someone is typing
   *[other] { $name } is typing
}
thread-writesToo = { $name ->
    [none] Someone is typing too
   *[other] { $name } is typing too
}
thread-writesNote = { $name ->
    [none] Someone is typing a note
   *[other] { $name } is typing a note
}
thread-goneTitle = This conversation was deleted
thread-gone-manual = A colleague or your backend deleted it.
thread-gone-retention = Its retention period ended: the project keeps conversations for a limited time.
thread-gone-gdpr = Its contact was erased, together with all of their data.
thread-gone-not_found = It does not exist, or you don't have access to it.
thread-goneDraft = Your draft is still here:
thread-copyDraft = Copy draft
thread-dropDraft = Discard draft
thread-hidden = hidden from the contact
thread-hiddenHint = The contact can't see this conversation yet.
thread-snoozed = snoozed until { $at }

truth-kept = Will send when you're back online
truth-keptLimited = Kept here: too many requests
truth-keptSignedOut = Kept here until you sign in
truth-keptFailed = Kept here: the service failed, retrying
truth-keptNext = Kept here, sent after earlier messages
truth-sending = Sending…
truth-onDisk = Saved
truth-within = in { $time }
truth-ms = { NUMBER($ms) } ms
truth-s = { NUMBER($s) } s
# $name, $after
truth-got = Delivered to { $name } { $after } later
truth-gotIt = Delivered to { $name }
truth-gotAll = Delivered to all { NUMBER($n) } endpoints
# $name, $why
truth-trying = { $name }: retrying{ $why }
truth-waiting = { $name }: queued
# $name, $why
truth-failed = Not delivered to { $name }: { $why }
# $name, $n (number), $why
truth-failedMany = { $n } messages not delivered to { $name }: { $why }
truth-behind = { $id } has not confirmed it
truth-away = { $id } is not connected
truth-confirmed = { $n ->
    [one] Confirmed by { $n } stream consumer
   *[other] Confirmed by { $n } stream consumers
}
truth-why = Why?
truth-receipts = Delivery of this message
truth-attempts = { $n ->
    [one] { $n } attempt
   *[other] { $n } attempts
}
truth-answered = answered { $status }
truth-next = next attempt { $at }
truth-storedHere = Sent
truth-unreached = Not yet in the customer's browser
truth-missed = Not delivered to the customer
truth-notReached = Stored, not yet in the customer's browser
# $at, $exact
truth-reached = { $exact ->
    [true] Reached the customer's browser { $at }
   *[false] Reached the customer's browser by { $at }
}
# $at, $exact
truth-seenAt = { $exact ->
    [true] seen { $at }
   *[false] seen by { $at }
}
# $words, $n (number), $total (number)
truth-some = { $words } ({ $n } of { $total })
truth-notAccepted = Couldn't send
truth-edit = Edit
truth-discard = Discard
truth-retry = Send again

composer-label = Write
composer-reply = Reply
composer-note = Note
composer-toCustomer = The customer will see this
composer-onlyAgents = Only agents will see this
composer-replyTo = Reply to { $name }…
composer-writeNote = Write a note for your colleagues…
composer-send = Send
composer-addNote = Add note
composer-keep = Send when online
composer-sendMore = More ways to send
composer-sendClose = Send and close
composer-sendLater = Send later…
composer-writeFirst = Write the reply first, then choose its time.
composer-sendPending = Send and set to pending
composer-sendSnooze = Send and snooze until tomorrow
composer-attach = Attach a file
composer-snippet = Insert a snippet
composer-speak = Speak a reply
composer-dropHere = Drop files to attach them
composer-offline = Will send when you're back online
composer-keptIn-saved = Draft saved
composer-keptIn-device = Draft kept on this device only
composer-keptIn-nowhere = Draft not kept: copy it before you leave
composer-useAsReply = Use as reply
composer-useAsNote = Use as note
composer-draftLost = This browser can't keep drafts: copy your text before you leave.
composer-left = { NUMBER($n) } left
composer-over = { NUMBER($n) } characters over the limit
composer-cannot = You have no permission to reply here. Your role is read-only.
composer-cannotProject = { $role ->
    [none] Your role here can read but not reply.
   *[other] Your role here ({ $role }) can read but not reply.
}
composer-sendingIn = Sending in { NUMBER($s) } s
composer-scheduled = Scheduled for { $at }
composer-scheduledGone = A scheduled reply was not sent: its conversation was deleted.
composer-undo = Undo
composer-now = Send now
composer-removeFile = Remove { $name }
composer-uploading = Uploading { $name }
# $name, $why
composer-uploadFailed = { $name } can't be attached: { $why }
composer-tooMany = A message can have at most 10 files.
composer-waitFiles = Files are still uploading.
# $name, $n (number)
composer-movedOn = { $n ->
    [one] { $name ->
        [none] Someone wrote before you
       *[other] { $name } wrote before you
    }
   *[other] { $n } new messages came before yours
}
composer-sendAnyway = Send anyway
composer-edit = Edit
composer-discard = Discard
composer-refused = Couldn't send: { $why }
composer-taken = Your reply is back in the editor.
composer-alreadySent = It was already sent.
composer-notTakenBack = Couldn't take it back: { $why }
# $name, $why
composer-heldRefused = { $name ->
    [none] Couldn't send your reply: { $why }
   *[other] Couldn't send your reply to { $name }: { $why }
}
composer-snippets = Snippets
composer-noSnippets = { $q ->
    [none] No snippets yet
   *[other] No snippets for “{ $q }”
}
composer-reopens = This conversation is closed. A reply reopens it.

formatting-bar = Formatting
formatting-bold = Bold
formatting-italic = Italic
formatting-code = Code
formatting-link = Link
formatting-bullets = Bulleted list
formatting-numbers = Numbered list
formatting-quote = Quote
formatting-words = link text
formatting-preview = Preview
formatting-on = Formatted
formatting-previewOf = Preview of your message
formatting-show = Formatting
formatting-plain = Sent as plain text: formatting is off.

context-label = Contact
context-loading = Loading the contact
context-failed = Couldn't load the contact
context-edit = Edit contact
context-name = Name
context-email = Email
context-phone = Phone
context-id = External ID
context-locale = Language
context-attributes = Attributes
context-about = Conversation
context-tags = Tags
context-assignee = Assignee
context-created = Created
context-rating = Rating
context-seen = Seen by contact
context-memory = Memory
context-nothingRemembered = No memory entries for this contact.
context-others = Other conversations
context-noOthers = No other conversations.
context-ticket = Ticket
context-tickets = Tickets
context-noTicket = No tickets.
context-network = Network log
context-loadNetwork = { $n ->
    [one] Show { $n } request
   *[other] Show { $n } requests
}
context-workflow = Workflow
context-waitsForAnswer = waiting for an answer
context-runs = running
context-timeline = Timeline
context-noTimeline = No activity yet.
context-notAllowed = Your role can't read this.
context-saved = Contact saved.
context-saveFailed = Couldn't save the contact: { $why }
context-channel = Channel
context-deletedChannel = Deleted channel
context-browser = Browser
context-status = Status
context-priority = Priority
context-copyId = Copy conversation ID
context-unassigned = Unassigned

mentions-label = People and teams
mentions-team = team
mentions-mention = Mention a colleague
mentions-notifies = Notifies
mentions-tooMany = A note can mention at most 20 people and teams.
mentions-found = { $n ->
    [one] { $n } suggestion
   *[other] { $n } suggestions
}
mentions-notify = Notify { $name }
mentions-writtenAs = Written as @{ $name }

followers-title = Followers
followers-none = No one follows this conversation.
followers-by = Followed by { $names }

activity-started = started the conversation
activity-woke = unsnoozed it
activity-took = assigned it to themselves
activity-unassigned = unassigned it
activity-archived = archived it
activity-unarchived = unarchived it
activity-shown = showed it to the contact
activity-linked = linked a ticket
activity-unlinked = unlinked the ticket
activity-splitOff = started it with messages of another conversation
activity-split = started a new conversation with messages of this one
activity-merged = merged it into another conversation
activity-unmerged = undid its merge
activity-absorbed = merged another conversation into it
activity-released = separated a merged conversation from it
activity-status-OPEN = reopened it
activity-status-PENDING = set it to pending
activity-status-CLOSED = closed it
activity-tagged = added the tag { $name }
activity-untagged = removed the tag { $name }
activity-snoozed = snoozed it until { $at }
activity-unneeded = marked it as needing no answer
activity-needed = marked it as waiting for an answer
activity-assigned = assigned it to { $name }
activity-named = changed the subject to “{ $title }”
activity-system = Deskwire
activity-key = Server key
activity-bot = Bot

actions-assignMe = Assign to me
actions-assigned = Yours
actions-assign = Assign to…
actions-close = Close
actions-reopen = Reopen
actions-pending = Pending
actions-toPending = Set to pending
actions-toOpen = Set to open
actions-snooze = Snooze
actions-wake = Unsnooze
actions-tag = Tag
actions-unread = Mark unread
actions-context = Contact
actions-block = Block contact…
actions-unblock = Unblock contact…
actions-more = More actions
actions-already = { $who }: nothing to change
actions-thisOne = This conversation
actions-several = { $n ->
    [one] { $n } conversation
   *[other] { $n } conversations
}
# $who, $to
actions-what-assign = Assign { $who } to { $to }
actions-what-unassign = Unassign { $who }
actions-what-close = Close { $who }
actions-what-reopen = Reopen { $who }
actions-what-pending = Set { $who } to pending
# $who, $until
actions-what-snooze = Snooze { $who } until { $until }
actions-what-wake = Unsnooze { $who }
actions-what-noAnswer = Mark { $who } as needing no answer
actions-what-waitAgain = Mark { $who } as waiting for an answer
actions-what-tags = Change the tags of { $who }
actions-what-unread = Mark { $who } unread
actions-what-follow = Follow { $who }
actions-what-unfollow = Stop following { $who }
actions-what-rename = Change the subject of { $who }
actions-what-archive = Archive { $who }
actions-what-unarchive = Unarchive { $who }
actions-done-assign = assigned to { $to }
actions-done-unassign = unassigned
actions-done-close = closed
actions-done-reopen = reopened
actions-done-pending = set to pending
actions-done-snooze = snoozed until { $until }
actions-done-wake = no longer snoozed
actions-done-noAnswer = marked as needing no answer
actions-done-waitAgain = marked as waiting for an answer
actions-done-tags = tags changed
actions-done-unread = marked unread
actions-done-follow = you follow it now
actions-done-unfollow = you no longer follow it
actions-done-rename = subject changed
actions-done-archive = archived
actions-done-unarchive = no longer archived
# $who, $done, $n (number)
actions-did = { $n ->
    [one] { $who }: { $done }
   *[other] { $who } { $done }
}
actions-names-assign = Assign { $who }
actions-names-close = Close { $who }
actions-names-reopen = Reopen { $who }
actions-names-open = Reopen { $who }
actions-names-pending = Set { $who } to pending
actions-names-tags = Change the tags of { $who }
actions-names-snooze = Snooze { $who }
actions-names-noAnswer = Mark { $who } as needing no answer
actions-names-waitAgain = Mark { $who } as waiting for an answer
actions-names-follow = Change whether you follow { $who }
actions-names-title = Change the subject of { $who }
actions-names-archive = Change the archiving of { $who }
actions-names-unread = Mark { $who } unread
actions-kept = { $what }: waiting until you're back online
actions-busy = { $what }…
# $what, $why
actions-refused = Couldn't { LOWER($what) }: { $why }
actions-notSaved = Not saved yet
actions-notSavedHint = Waiting until you're back online
actions-allRead = All conversations marked as read.
actions-readAll = Mark all conversations as read
actions-unreadAgain = Mark them unread again
actions-unopenable = { $n ->
    [one] { $n } draft or unsent message in this browser can't be decrypted, because the service's secret was replaced. They were not sent.
   *[other] { $n } drafts or unsent messages in this browser can't be decrypted, because the service's secret was replaced. They were not sent.
}
actions-undo = Undo
actions-nothingToUndo = Nothing to undo.
actions-undoing = Undo “{ $what }”
actions-undone = Undone: { LOWER($what) }
# $what, $by
actions-cantUndo = { $by ->
    [none] Can't undo “{ $what }”: someone else has changed it in the meantime.
   *[other] Can't undo “{ $what }”: { $by } has changed it in the meantime.
}
# $what, $n (number), $all (number)
actions-cantUndoSome = Can't undo “{ $what }” for { $n } of { $all }: someone else has changed them in the meantime.
actions-sent = Your reply to { $who } was already sent.
actions-restored = { $who }: as before. Your reply was already sent.

unopened-title = Undecryptable texts
unopened-show = Show
unopened-open = Open the conversation
unopened-remove = Remove
unopened-removeAll = Remove all
unopened-why = These texts are encrypted with a key that the service no longer has, because its secret was replaced. They were not sent. If the operator restores the old secret, they can be opened again.
unopened-reply = Draft of a reply
unopened-note = Draft of a note
unopened-message = Unsent message or change
unopened-none = No undecryptable texts.

conversation-rename = Change the subject
conversation-subject = Subject
conversation-subjectHint = Leave it empty for no subject.
conversation-delete = Delete the conversation
conversation-deleted = Conversation deleted.
conversation-askFor = delete
conversation-losesMessages = { $n ->
    [one] its message, with files
   *[other] its { $n } messages, with files
}
conversation-losesNotes = notes, drafts, and replies that are scheduled
conversation-losesEvents = its events, so that backends no longer find it in the feed
conversation-stays-1 = the contact, and the contact's other conversations
conversation-stays-2 = deliveries to webhooks that were already made

dialogs-assign = Assign to
dialogs-me = Me
dialogs-unassigned = Unassigned
dialogs-teams = Teams
dialogs-people = People
dialogs-filterPeople = Name of a person or team
dialogs-noPeople = No matching people or teams.
dialogs-snooze = Snooze until
dialogs-laterToday = Later today
dialogs-tomorrow = Tomorrow
dialogs-nextWeek = Next week
dialogs-date = A date and time
dialogs-until = Until
dialogs-snoozeIt = Snooze
dialogs-inPast = This time is in the past.
dialogs-tags = Tags
dialogs-tagPlaceholder = Add a tag
dialogs-createTag = Create “{ $name }”
dialogs-removeTag = Remove { $name }
dialogs-tagsOf = { $n ->
    [one] Tags of { $n } conversation
   *[other] Tags of { $n } conversations
}
# $n (number), $all (number)
dialogs-tagOnSome = { $n } of { $all }
# $name, $state, $several
dialogs-tagState = { $state ->
    [mixed] { $name }: unchanged
    [true] { $several ->
        [true] { $name }: on all
       *[false] { $name }: added
    }
   *[false] { $several ->
        [true] { $name }: on none
       *[false] { $name }: removed
    }
}
dialogs-noTags = No tags yet: type one and press Enter.
dialogs-start = New conversation
dialogs-to = To
dialogs-findContact = Name, email or external ID
dialogs-subject = Subject
dialogs-message = First message
dialogs-startIt = Start
dialogs-startFailed = Couldn't start the conversation: { $why }
dialogs-chooseContact = Choose a contact
dialogs-newContact = New contact with external ID “{ $id }”
dialogs-help = Keyboard shortcuts
dialogs-settings = Settings
dialogs-theme = Appearance
dialogs-themes-system = Match system
dialogs-themes-light = Light
dialogs-themes-dark = Dark
dialogs-rows = Each conversation in the list shows
dialogs-rowParts-words = Last message
dialogs-rowParts-tags = Tags
dialogs-rowParts-waits = Waiting time
dialogs-rowParts-assignee = Assignee
dialogs-singleKeys = Single-key shortcuts
dialogs-singleKeysText = Letters such as e and r work when no field is focused.
dialogs-advance = Open the next conversation when one is closed
dialogs-undoSend = Undo send
dialogs-undoChoices-0 = Off
dialogs-undoChoices-5 = 5 s
dialogs-undoChoices-10 = 10 s
dialogs-undoChoices-20 = 20 s
dialogs-undoChoices-30 = 30 s
dialogs-undoChoices-auto = Only for long replies (5 s)
dialogs-undoText = The service holds each reply for this time, so that you can take it back. It is sent even if you close the desk.
dialogs-signOut = Sign out
dialogs-signOutKept = { $n ->
    [one] { $n } message or change has not reached the service. Signing out discards them.
   *[other] { $n } messages and changes have not reached the service. Signing out discards them.
}
dialogs-signOutDrafts = { $n ->
    [one] { $n } draft is on this device only. Signing out discards them.
   *[other] { $n } drafts are on this device only. Signing out discards them.
}
dialogs-stay = Stay signed in
dialogs-delete = Delete

receipts-title = Delivery of this message
receipts-none = No endpoints or stream consumers yet.
receipts-sending = Sending…
receipts-log = Delivery log
receipts-again = Send again
receipts-failed = Couldn't send it again: { $why }
receipts-sent = Sending to { $name } again.
receipts-onItsWay = Already on its way to { $name }.
receipts-heard = { $id } has confirmed it
receipts-behind = { $id } has not confirmed it yet
receipts-away = { $id } is not connected and has not confirmed it
receipts-consumer = stream consumer

rewrite-redact = Redact this message
rewrite-redactIt = Redact
rewrite-delete = Delete this message
rewrite-redacted = Message redacted.
rewrite-deleted = Message deleted.
rewrite-text = Select the text to redact
rewrite-addRange = Redact selection
rewrite-keepRange = Keep it
rewrite-selectFirst = Select a part of the text first.
rewrite-allText = Redact everything
rewrite-file = Remove the file { $name }
rewrite-redactText = Redacted text is replaced by asterisks for everyone: in stored events, in search, and in queued deliveries.
rewrite-forGood = This can't be undone. Copies that your own systems have already received stay there.
rewrite-losesMessage = The message
rewrite-losesText = “{ $text }”
rewrite-losesFile = The file { $name }
rewrite-losesElsewhere = Its text in stored events, in search and in queued deliveries
rewrite-stays-1 = Copies in your own systems
rewrite-stays-2 = The rest of the conversation

voice-label = Voice
voice-record = Record
voice-stop = Stop and use
voice-cancel = Cancel
voice-mode = Use as
voice-modes-smart = reply from keywords
voice-modes-dictate = word-for-word dictation
voice-listening = Recording
voice-working = Transcribing…
voice-insecure = The microphone needs https.
voice-refused = The browser denied access to the microphone.
voice-empty = No speech was recognized.
voice-tooLong = Recording stopped: maximum length reached.
voice-failed = Couldn't use the recording: { $why }
voice-done = The draft is in the editor. Nothing was sent.

palette-label = Commands
palette-placeholder = Type a command or a name
palette-here = This conversation
palette-selection = { $n ->
    [one] { $n } conversation selected
   *[other] { $n } conversations selected
}
palette-go = Go to
palette-view = This view
palette-assign = Assign to
palette-desk = The desk
palette-nothing = No matching commands
palette-found = { $n ->
    [one] { $n } command
   *[other] { $n } commands
}

commands-palette = All commands
commands-search = Search
commands-help = Keyboard shortcuts
commands-filter = Filter this view…
commands-start = New conversation
commands-viewMine = Mine
commands-viewMentions = Mentions
commands-viewFollowing = Following
commands-viewWaiting = Waiting
commands-viewUnassigned = Unassigned
commands-viewTeam = Your team
commands-viewSnoozed = Snoozed
commands-viewAll = All conversations
commands-next = Next in the list
commands-previous = Previous in the list
commands-openRow = Open
commands-nextConversation = Next conversation
commands-previousConversation = Previous conversation
commands-select = Select
commands-extendDown = Extend the selection down
commands-extendUp = Extend the selection up
commands-selectAll = Select all loaded
commands-reply = Reply
commands-note = Write a note
commands-send = Send
commands-useAsReply = Use the note as a reply
commands-useAsNote = Use the reply as a note
commands-sendClose = Send and close
commands-sendLater = Send the reply later…
commands-bold = Bold
commands-italic = Italic
commands-code = Code
commands-link = Link (with a selection)
commands-snippets = Insert a snippet (/ too, at the start of a word)
commands-undo = Undo
commands-ticket = New ticket from this conversation
commands-openTicket = Open the ticket
commands-linkTicket = Link a ticket…
commands-unlinkTicket = Unlink the ticket
commands-merge = Merge into…
commands-unmerge = Undo the merge
commands-split = Split off a new conversation…
commands-waitAgain = Wait for an answer again
commands-reopen = Reopen
commands-unread = Mark unread
commands-follow = Follow
commands-unfollow = Stop following
commands-rename = Change the subject…
commands-archive = Archive
commands-unarchive = Unarchive
commands-copyLink = Copy link
commands-block = Block or unblock the contact…
commands-remove = Delete the conversation…
commands-readAll = Mark all as read
commands-context = Show or hide the contact
commands-timeline = Timeline
commands-back = Back

notifications-message = New message
notifications-you = you
# $who, $text
notifications-note = { $text ->
    [none] New note by { $who }
   *[other] Note by { $who }: { $text }
}
# $who, $to
notifications-assigned = { $who } assigned this conversation to { $to }
# $n (number), $of (number)
notifications-several = { $n ->
        [one] { $n } notification
       *[other] { $n } notifications
    } in { $of ->
        [one] { $of } conversation
       *[other] { $of } conversations
    }

commandGroups-list = List
commandGroups-go = Go to
commandGroups-conversation = Conversation
commandGroups-composer = Writing
commandGroups-anywhere = Everywhere

problems-offline = the service is not responding
