here = New conversation from here…
title = New conversation from this message
about = { $name } sees a new conversation that begins with these messages. They stay in this one, too, and nothing is sent again. Undo merges the two.
message = Message
noText = A message without text
subject = Subject
which = Messages
only = Only this message
onlyNote = A note alone can't start a conversation that { $name } sees.
later = { $n ->
    [one] This and the later one (1 message)
   *[other] This and the later ones ({ $n } messages)
}
leftOut = { $n ->
    [one] 1 of the later messages is in another new conversation already and is left out.
   *[other] { $n } of the later messages are in another new conversation already and are left out.
}
tooMany = Only the first { NUMBER($max) } of { NUMBER($n) } messages, because a conversation can start with { NUMBER($max) } at most.
notesOnly = Choose at least one message that { $name } sees.
start = Start the conversation
started = { $n ->
    [one] New conversation with 1 message.
   *[other] New conversation with { $n } messages.
}
what = New conversation
undo = Undo
undone = The new conversation is merged into this one.
notUndone = Couldn't merge the conversations again: { $why }
noMessage = This conversation has no message that a new one could start with.
also = Also in “{ $name }”
alsoInAnother = Also in another conversation
from = Started from “{ $name }”
fromAnother = Started from another conversation
