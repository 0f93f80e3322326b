pages-webhooks = Webhooks
pages-consumers = Stream consumers
pages-events = Live log
pages-history = Time travel

save = Save
saved = Saved
close = Close
none = –
yes = yes
no = no
ms = { NUMBER($ms) } ms
seconds = { $s } s
minutes = { NUMBER($m) } min
percent = { $n } %

status-delivered = delivered
status-dropped = dropped
status-skipped = skipped
status-pending = pending

webhooks-endpoint = Endpoint
webhooks-health = Health
webhooks-share = Success rate (24 h)
webhooks-waits = Backlog
webhooks-lastDelivery = Last delivery
webhooks-register = Register an endpoint
webhooks-empty = No endpoints yet
webhooks-emptyText = Register the address of your service to receive every event, signed.
webhooks-registered = Endpoint registered
webhooks-secretText = Your service verifies the signature of each delivery with this secret.
# $n (number), $of (number)
webhooks-arrivedOf = { $n } of { $of } delivered
webhooks-held = { NUMBER($n) } held
webhooks-missed = { NUMBER($n) } missed
# $n (number), $since
webhooks-heldSince = { $n ->
    [one] { $n } delivery is held, the oldest since { $since }
   *[other] { $n } deliveries are held, the oldest since { $since }
}
# $n (number), $since
webhooks-missedSince = { $n ->
    [one] { $n } delivery was missed since { $since } and will be retried
   *[other] { $n } deliveries were missed since { $since } and will be retried
}

form-url = Address
form-urlHint = An https address that this service can reach.
form-description = Name
form-descriptionHint = Shown to agents beside their messages, e.g. crm.
form-events = Events
form-all = All events of the contract
form-allText = All conversation, message and contact events except typing.
form-these = These events
form-contract = Conversations, messages, contacts
form-typing = Typing
form-extensions = Beyond the contract
form-internal = Agents' notes
form-catchUp = Catch up automatically
form-catchUpText = Resend missed events once the endpoint recovers.
form-change = Edit the endpoint
form-registerIt = Register

endpoint-test = Send a test
endpoint-testing = Sending…
endpoint-more = More
endpoint-rotate = Replace the secret
endpoint-disable = Disable
endpoint-enable = Enable
endpoint-enabled = Endpoint enabled.
endpoint-delete = Delete
endpoint-deleted = Endpoint deleted.
endpoint-rotateText = The endpoint gets a new secret. Deliveries are also signed with the old one for 24 hours, so that you can update your service without a gap.
endpoint-rotated = Update your service within 24 hours. Until then, both secrets sign.
endpoint-disableLoses = Queued events, and events until the endpoint is enabled again, are skipped.
endpoint-disableStays = Skipped events can be recovered once it is enabled, as long as they are stored.
endpoint-deleteLoses = The endpoint and its secret: it gets no further events.
endpoint-deleteLog = Its delivery log.
endpoint-deleteStays = All events, conversations and other endpoints.
endpoint-nextProbe = Next probe
endpoint-apiVersion = Event version
endpoint-secret = Secret
endpoint-oldUntil = the previous one also signs until { $until }

figures-byHour = Deliveries per hour
figures-byDay = Deliveries per day
figures-since = Time
figures-lost = dropped or skipped
figures-days = { $n ->
    [one] 24 h
   *[other] { $n } days
}
# $delivered (number), $lost (number), $held (number)
figures-title = { $delivered } delivered, { $lost } dropped or skipped, { $held } pending
# $n (number), $p50, $p99
figures-latency = { $n ->
    [one] Latency of the newest { $n } successful delivery: median { $p50 }, 99th percentile { $p99 }.
   *[other] Latency of the newest { $n } successful deliveries: median { $p50 }, 99th percentile { $p99 }.
}

log-title = Deliveries
log-filters = Filters
log-when = Time
log-event = Event
log-outcome = Outcome
log-attempts = Attempts
log-actions = Actions
log-conversation = Conversation
log-since = Since
log-any = any
log-again = again
log-notYet = No attempt has finished yet.
log-none = No deliveries yet
log-noneText = Send a test, or wait for an event.
log-noneFits = No deliveries match these filters
log-clear = Clear filters
# $status, $took
log-answered = answered { $status } within { $took }

delivery-title = Delivery
delivery-made = Created
delivery-next = Next attempt
delivery-repeats = Repeats
delivery-repeated = Sent again as
delivery-id = ID
delivery-history = conversation at that time
delivery-noAttempt = No attempts.
delivery-answer = Response (first KiB)
delivery-event = Event data
delivery-noEvent = The event is no longer stored, or was a test.
delivery-later = + { $after }

again-one = Send again
again-sentOne = Sending again.
again-look = Show
again-failed = Couldn't send it again: { $why }
again-recover = Recover failed deliveries
again-recoverShort = Recover…
again-recoverText = All deliveries dropped or skipped in this period are sent again, oldest first.
again-since = Period
again-hours-1 = the last hour
again-hours-24 = 24 hours
again-days = { NUMBER($n) } days
again-replay = Send a conversation again
again-replayShort = Replay…
again-replayText = All events of one conversation are sent to this endpoint again, in order, including those already delivered.
again-conversation = Conversation
again-conversationHint = Its ID, or its address in the desk.
again-from = From sequence
again-to = To sequence
again-counting = Counting…
again-disabled = The endpoint is disabled. Enable it first.
again-sendNone = Send again
again-would = { $n ->
    [0] No events would be sent.
   *[other] { $n ->
        [one] { $n } event would be sent.
        *[other] { $n } events would be sent.
    }
}
again-pending = { $n ->
    [one] { $n } event is already pending.
   *[other] { $n } events are already pending.
}
again-notStored = { $n ->
    [one] { $n } event is no longer stored.
   *[other] { $n } events are no longer stored.
}
again-send = { $n ->
    [one] Send { $n } event again
   *[other] Send { $n } events again
}
again-sent = { $n ->
    [one] Sending { $n } event again.
   *[other] Sending { $n } events again.
}

consumers-consumer = Consumer
consumers-state = State
consumers-lag = Unconfirmed
consumers-channel = Channel
consumers-confirmed = Confirmed up to
consumers-since = Connected since
consumers-end = End
consumers-upToDate = up to date
consumers-behind = behind
consumers-away = not connected
consumers-ofProject = the project
consumers-ofConversation = the conversation
consumers-ofContact = the contact
consumers-none = No consumers yet
consumers-noneText = Backends that subscribe to the realtime stream show up here, with the position they have confirmed.
consumers-endTitle = End the consumer { $id }
consumers-ended = { $id } was disconnected.
consumers-loses = Its connection is closed with 4009, and this consumer is refused for a minute.
consumers-stays = Its confirmed position: the next consumer of the channel continues there.

events-about = About
events-live = live
events-waits = not connected
events-pause = Pause
events-resume = Resume
events-paused = paused, { NUMBER($n) } new
events-copyCursor = Copy latest event ID
events-none = No events
events-noneText = No stored event matches the filters. Events are kept for 7 days.
events-reached = Deliveries
events-log = delivery log

history-of = Time travel: { $name }
history-toConversation = To the conversation
history-subject = Subject
history-show = Show history
history-recent = Recent
history-none = No conversations yet
history-noEvents = No stored events
history-noEventsText = Events are kept for 7 days. The state before that can't be shown.
history-slider = Event
history-back = Previous event
history-on = Next event
history-present = Back to present
history-asItIs = Present
history-then = As of event { NUMBER($n) }
# $n (number), $last (number), $when
history-at = { $when ->
    [none] #{ $n } of { $last }
   *[other] #{ $n } of { $last }, { $when }
}
history-fields-status = Status
history-fields-assignee = Assigned to
history-fields-title = Subject
history-fields-tags = Tags
history-fields-snoozedUntil = Snoozed until
history-fields-archived = Archived
history-fields-visible = Visible to the contact
history-fields-ticketId = Ticket
history-fields-rating = Rating
history-fields-attributes = Attributes
history-statuses-OPEN = open
history-statuses-PENDING = pending
history-statuses-CLOSED = closed
history-nowIs = now
history-messages = Messages
history-note = note
history-redacted = Redacted
history-nothingSaid = No messages.
history-later = { $n ->
    [0] No later messages.
   *[other] { $n ->
        [one] { $n } later message.
        *[other] { $n } later messages.
    }
}
history-timeline = Timeline
history-earlier = Earlier
history-goTo = Go to event { NUMBER($n) }
history-authors-contact = Contact
history-authors-agent = Agent
history-authors-bot = Bot
history-authors-system = Deskwire

eventText-by = by { $who }
eventText-workflow = the workflow { $name }
eventText-actors-key = a server key
eventText-actors-machine = a machine
eventText-actors-system = Deskwire
eventText-actors-contact = the contact
eventText-began = The conversation started
eventText-reopened = Reopened
eventText-closed = Closed by { $by }
eventText-closers-agent = an agent
eventText-closers-bot = a bot
eventText-closers-system = Deskwire
eventText-assignedTo = Assigned to { $name }
eventText-unassigned = Unassigned
eventText-updated = Changed: { $what }
# $who, $text
eventText-wrote = { $who } wrote “{ $text }”
eventText-reached = the customer's browser received the messages up to no. { NUMBER($n) }
eventText-seen = the customer saw the messages up to no. { NUMBER($n) }
eventText-redacted = A message was redacted
eventText-deleted = A message was deleted
# $name, $text
eventText-asked = The workflow { $name } asked “{ $text }”
# $name, $how
eventText-ended = The workflow { $name } { $how }
eventText-endings-completed = completed
eventText-endings-handed_off = handed over to an agent
# $flow, $action, $version
eventText-byStep = { $version ->
    [none] By step { $action } of { $flow }
   *[other] By step { $action } of { $flow }, version { $version }
}
# $text, $flow, $action
eventText-afterStep = { $text ->
    [none] After its step { $action } of { $flow }
   *[other] After its step { $action } of { $flow }: “{ $text }”
}
eventText-tagged = tagged { $name }
eventText-untagged = tag { $name } removed
eventText-snoozed = snoozed until { $until }
eventText-woke = unsnoozed
eventText-status-OPEN = set to open
eventText-status-PENDING = set to pending
eventText-status-CLOSED = closed
eventText-named = subject changed to “{ $title }”
eventText-archived = archived
eventText-unarchived = unarchived
eventText-unneeded = marked as needing no answer
eventText-needed = marked as waiting for an answer
eventText-shown = shown to the contact
eventText-linked = a ticket was linked
eventText-unlinked = the ticket was unlinked
