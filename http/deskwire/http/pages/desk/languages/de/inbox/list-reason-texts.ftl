in = Warum sie in „{ $view }“ ist
notIn = Warum sie nicht in „{ $view }“ ist
all = Die Ansicht enthält jede Konversation, die nicht archiviert ist.
travel = Zeitreise
archived = Sie ist archiviert.

status-OPEN = Sie ist offen.
status-PENDING = Sie ist ausstehend.
status-CLOSED = Sie ist geschlossen.

unassigned = Sie ist nicht zugewiesen.
assignedToYou = Sie ist Ihnen zugewiesen.
assignedTo = Sie ist { $name } zugewiesen.
ofTeam = Sie ist dem Team { $name } zugewiesen.
notOfTeam = Sie ist nicht dem Team { $name } zugewiesen.
unread = { $n ->
    [one] Sie hat { $n } ungelesene Nachricht.
   *[other] Sie hat { $n } ungelesene Nachrichten.
}
allSeen = Sie hat keine ungelesenen Nachrichten.
mentioned = Eine Notiz erwähnt Sie.
notMentioned = Keine Notiz erwähnt Sie.
followed = Sie folgen ihr.
notFollowed = Sie folgen ihr nicht.
tagged = Sie hat das Schlagwort { $tag }.
notTagged = Sie hat das Schlagwort { $tag } nicht.
snoozed = Sie ist bis { $until } zurückgestellt.
notSnoozed = Sie ist nicht zurückgestellt.
further = Sie erfüllt die übrigen Bedingungen des Filters.
notFurther = Sie ist nicht unter den Konversationen, die die übrigen Bedingungen des Filters erfüllen.
visible = Der Kontakt kann sie sehen.
hidden = Der Kontakt kann sie noch nicht sehen.
waits = Ihr Kontakt wartet seit { $since } auf eine Antwort.
answered = Ihr Kontakt wartet nicht auf eine Antwort.
unneeded = Es wurde vermerkt, dass keine Antwort nötig ist.
