title = Merge into another conversation
about = { $name }'s messages from both appear in the one that you choose. No message is sent again, and you can undo it for 30 days.
find = Find a conversation of this customer
none = This customer has no other conversation.
noMatch = No conversation matches.
loading = Loading…
untitled = No subject
# $words, $day
last = { $words ->
    [none] { $day }
   *[other] { $words } · { $day }
}
merged = Merged into “{ $name }”.
what = Merge conversations
undo = Undo
undoMerge = Undo the merge
undone = The conversations are separate again.
failed = Couldn't merge the conversations: { $why }
notUndone = Couldn't undo the merge: { $why }
banner = { $day ->
    [none] This conversation is merged. New messages from the customer go to the other one.
   *[other] This conversation was merged on { $day }. New messages from the customer go to the other one.
}
openOther = Open the other conversation
shows = { $n ->
    [one] 1 merged conversation
   *[other] { $n } merged conversations
}
from = from “{ $name }”
fromAnother = from another conversation
