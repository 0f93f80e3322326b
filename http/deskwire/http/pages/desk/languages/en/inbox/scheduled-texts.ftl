title = Send later
inAnHour = In an hour
tomorrow = Tomorrow morning
monday = Monday morning
date = A date and time
schedule = Schedule
zone = Times are in your time zone, { $zone }.
inPast = This time is in the past.
tooFar = Choose a time within a year.
unlessReplied = { $name ->
    [none] Don't send it if the customer writes first
   *[other] Don't send it if { $name } writes first
}
unlessRepliedText = Then it comes back to you with the reason.
# $at, $zone
at = Scheduled for { $at } ({ $zone })
sending = Sending…
onlyUnless = Not sent if the customer writes first.
closed = Not sent while the conversation is closed.
label = Scheduled reply
now = Send now
edit = Edit
cancel = Cancel
cancelled = Cancelled. The reply won't be sent.
undo = Undo
notScheduled = Couldn't schedule it again: { $why }
page = Scheduled
none = Nothing is scheduled
noneText = Write a reply, then choose “Send later” beside the Send button.
refused = Not sent
next = Will be sent
loading = Loading what you have scheduled
failed = Couldn't load what you have scheduled
to = To { $name }
note = Note
files = { $n ->
    [one] 1 file
   *[other] { $n } files
}
