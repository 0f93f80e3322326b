one = Ticket
title = Titel
description = Beschreibung
status = Status
priority = Priorität
type = Typ
assignee = Zuständig
user = Person
team = Team
tags = Schlagwörter
snoozed = Zurückgestellt bis
snooze = Zurückstellen
wake = Zurückstellung beenden
conversation = Konversation
contact = Kontakt
updated = Geändert
createdAt = Erstellt
lastActivity = Letzte Aktivität
id = ID
unassigned = Nicht zugewiesen
noTeam = Kein Team
anyAssignee = Alle Zuständigen
anyStatus = Jeder Status
anyPriority = Jede Priorität
anyTag = Jedes Schlagwort
sort = Sortierung
find = Tickets suchen

statuses-OPEN = Offen
statuses-IN_PROGRESS = In Arbeit
statuses-DONE = Erledigt

priorities-LOW = Niedrig
priorities-MEDIUM = Mittel
priorities-HIGH = Hoch
priorities-URGENT = Dringend

sorts-_ = Neueste zuerst
sorts-updatedAt = Zuletzt geändert
sorts-priority = Dringendste zuerst
sorts-lastActivity = Letzte Aktivität

durations-3600 = für eine Stunde
durations-86400 = für einen Tag
durations-604800 = für eine Woche
durations-0 = Zurückstellung beenden

until = bis { $at }
create = Neues Ticket
createIt = Erstellen
conversationHint = Die ID der Konversation, um die es geht, falls es eine gibt. Das Ticket übernimmt ihren Kontakt.
none = Noch keine Tickets
noneText = Erstellen Sie hier eines oder aus einer Konversation.
filtered = Kein Ticket entspricht diesen Filtern
selected = { $n ->
    [one] { $n } Ticket ausgewählt
   *[other] { $n } Tickets ausgewählt
}
giveUser = Einer Person zuweisen …
giveTeam = Einem Team zuweisen …
setPriority = Priorität festlegen …
bulkDone = { $n ->
    [one] { $n } Ticket geändert
   *[other] { $n } Tickets geändert
}
bulkSame = { $n } unverändert
bulkGone = { $n } gelöscht
bulkFailed = Die Tickets konnten nicht geändert werden: { $why }
fields = Ticket
about = Verknüpft
activity = Aktivität
noActivity = Noch keine Änderungen.
openConversation = Konversation öffnen
openContact = Kontakt öffnen
saved = Ticket gespeichert.
unchanged = Nichts zu ändern.
deleted = Ticket gelöscht.
deleteOne = Dieses Ticket löschen
meantime = { $who } hat dieses Ticket geändert, während Sie es bearbeitet haben. Ihre Felder sind unverändert.
compare = Vergleichen
goneMeantime = { $who } hat dieses Ticket gelöscht. Ihr Text bleibt hier, bis Sie die Seite verlassen.
losesTicket = Das Ticket „{ $title }“
losesLog = Sein Aktivitätsprotokoll
staysConversation = Seine Konversation und sein Kontakt
didCreate = hat es erstellt
didChange = hat es geändert
createHere = Neues Ticket aus dieser Konversation
created = Ticket erstellt.
open = Ticket öffnen
linkOne = Ticket verknüpfen …
linkHere = Ticket verknüpfen
unlink = Verknüpfung lösen
undo = Rückgängig
aboutContact = Das Ticket ist mit dieser Konversation verknüpft und betrifft { $name }.
noTicket = Kein Ticket.
others = Weitere Tickets dieses Kontakts
noneOfContact = Dieser Kontakt hat keine Tickets. Tippen Sie, um alle zu durchsuchen.
hasConversation = hat eine Konversation
linkedElsewhere = Dieses Ticket ist mit einer anderen Konversation verknüpft. Lösen Sie dort zuerst die Verknüpfung.
linked = Mit „{ $title }“ verknüpft.
unlinked = „{ $title }“ ist nicht mehr verknüpft.
failed = Das Ticket konnte nicht geändert werden: { $why }
linkConversation = Konversation verknüpfen
noConversation = Es ist keine Konversation verknüpft.
findConversation = Konversationen suchen
noConversations = Keine passenden Konversationen.
alreadyLinked = hat ein Ticket
hasTicket = Diese Konversation hat ein anderes Ticket. Lösen Sie zuerst dessen Verknüpfung.
