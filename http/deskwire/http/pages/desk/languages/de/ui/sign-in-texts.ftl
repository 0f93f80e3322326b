tryAgain = Erneut versuchen
cancel = Abbrechen
offline = Der Dienst antwortet nicht. Versuchen Sie es gleich noch einmal.
signOut = Abmelden
title = Bei Deskwire anmelden
again = Erneut anmelden
againText = Ihre Sitzung ist beendet. Ihre Entwürfe bleiben erhalten, und nicht gesendete Nachrichten gehen hinaus, sobald Sie sich wieder anmelden.
email = E-Mail
password = Passwort
newPassword = Neues Passwort
signIn = Anmelden
or = oder
newPasswordText = Ihr Einmalpasswort wurde akzeptiert. Wählen Sie jetzt ein eigenes Passwort.
wrong = E-Mail oder Passwort ist falsch.
disabled = Die Anmeldung mit Passwort ist hier ausgeschaltet.
noWay = Hier ist keine Anmeldung eingerichtet. Wenden Sie sich an die Administration dieses Dienstes.
withProvider = Weiter mit { $name }
withPasskey = Passkey verwenden
setUp = Dieser Dienst hat noch keinen Inhaber. Öffnen Sie den einmaligen Link aus seinem Protokoll, um das erste Konto anzulegen.
forgot = Passwort vergessen?
forgotTitle = Passwort zurücksetzen
sendLink = Link senden
backToSignIn = Zurück zur Anmeldung
forgotMail = Geben Sie Ihre E-Mail-Adresse ein. Wenn ein Konto sie verwendet, erhalten Sie eine E-Mail mit einem einmaligen Link.
forgotSent = Wenn { $email } hier ein Konto hat, ist eine E-Mail mit einem einmaligen Link unterwegs. Sehen Sie auch im Spam-Ordner nach.
forgotAdministrator = Dieser Dienst versendet keine E-Mails. Bitten Sie die Administration Ihrer Organisation um einen einmaligen Link; damit können Sie ein neues Passwort wählen.

failures-no_account = Zu Ihrem Firmenkonto gibt es hier kein Konto. Bitten Sie die Administration Ihrer Organisation um eine Einladung.
failures-account_elsewhere = Ihr Konto hier gehört auch zu einer anderen Organisation, daher kann dieses Firmenkonto es nicht öffnen. Melden Sie sich mit Passwort oder Passkey an.
failures-no_role = Ihr Firmenkonto hat hier keine Rolle. Bitten Sie die Stelle, die Ihre Firmenkonten verwaltet, um Zugriff auf Deskwire.
failures-provider_refused = Die Anmeldeseite Ihrer Firma hat die Anfrage abgelehnt, oder die Anmeldung wurde abgebrochen.
failures-provider_unreachable = Die Anmeldeseite Ihrer Firma antwortet nicht. Versuchen Sie es gleich noch einmal.
failures-sign_in_expired = Die Anmeldung hat zu lange gedauert oder wurde in einem anderen Browser begonnen. Versuchen Sie es erneut.
failures-started_elsewhere = Eine andere Website hat die Anmeldung gestartet, daher wurde sie abgebrochen. Wählen Sie hier, wie Sie sich anmelden möchten.
failures-address_not_verified = Ihr Firmenkonto hat keine bestätigte E-Mail-Adresse und kann daher keinem Konto hier zugeordnet werden.
failures-other_account = Sie haben sich mit einem anderen Firmenkonto angemeldet als dem dieser Sitzung. Versuchen Sie es mit Ihrem eigenen.
failures-other = Die Anmeldung mit Ihrem Firmenkonto ist fehlgeschlagen. Versuchen Sie es erneut.

factorTitle = Bestätigen Sie, dass Sie es sind
factorText = Ihr Passwort wurde akzeptiert. Ihr Konto hat außerdem einen zweiten Faktor.
code = Code aus Ihrer Authenticator-App
recoveryCode = Wiederherstellungscode
confirm = Bestätigen
useCode = Code aus der App verwenden
useRecoveryCode = Wiederherstellungscode verwenden
usePassword = Passwort verwenden
usePasskey = Passkey verwenden
startAgain = Von vorn beginnen
challengeEnded = Der zweite Schritt hat zu lange gedauert, oder es gab zu viele falsche Codes. Melden Sie sich erneut an.
invalidCode = Dieser Code ist falsch oder wurde bereits verwendet. Warten Sie auf den nächsten in Ihrer App.
invalidRecoveryCode = Dieser Wiederherstellungscode ist falsch oder wurde bereits verwendet.
wrongPassword = Falsches Passwort.
proofTitle = Bestätigen Sie, dass Sie es sind
proofText = Für diese Änderung müssen Sie kürzlich bestätigt haben, dass Sie es sind. Die Bestätigung gilt 15 Minuten.
proofNone = Melden Sie sich erneut an, um diese Änderung vorzunehmen. Ihre Entwürfe bleiben erhalten.
otherUser = Inzwischen ist jemand anderes angemeldet, daher wurde die Änderung nicht vorgenommen.

passkeys-none = Dieser Browser unterstützt keine Passkeys.
passkeys-cancelled = Es wurde kein Passkey verwendet: Die Anfrage wurde abgebrochen oder hat zu lange gedauert.
passkeys-known = Dieses Gerät hat bereits einen Passkey für Ihr Konto.
passkeys-address = Unter dieser Adresse des Desks funktionieren Passkeys nicht. Wenden Sie sich an Ihre Administration.

link-titles-invitation = Ihrem Team beitreten
link-titles-password = Neues Passwort wählen
link-titles-setUp = Deskwire einrichten
link-invitation = { $name ->
    [none] Sie sind in eine Organisation eingeladen. Wählen Sie ein Passwort für Ihr Konto.
   *[other] Sie sind zu { $name } eingeladen. Wählen Sie ein Passwort für Ihr Konto.
}
link-invitationKnown = { $name ->
    [none] Sie sind in eine Organisation eingeladen. Geben Sie das Passwort Ihres Kontos ein, um beizutreten.
   *[other] Sie sind zu { $name } eingeladen. Geben Sie das Passwort Ihres Kontos ein, um beizutreten.
}
link-password = Wählen Sie ein neues Passwort. Alle Ihre Sitzungen enden, und dieser Browser wird angemeldet.
link-setUp = Legen Sie das erste Konto an. Ihm gehört die Organisation dieses Dienstes, und es lädt die anderen ein.
link-checking = Der Link wird geprüft
link-name = Ihr Name
link-passwordHint = Mindestens 12 Zeichen.
link-choose = Passwort
link-yourPassword = Ihr Passwort
link-organisation = Organisation
link-organisationHint = Der Name Ihrer Firma oder Ihres Teams. Leer lassen, um ihn aus Ihrer E-Mail-Adresse zu übernehmen.
link-again = Passwort bestätigen
link-notTheSame = Die Passwörter stimmen nicht überein.
link-buttons-invitation = Beitreten
link-buttons-password = Speichern und anmelden
link-buttons-setUp = Konto anlegen
link-ended = Dieser Link funktioniert nicht
link-endedText = Er wurde bereits verwendet, ist abgelaufen oder wurde durch einen neueren ersetzt. Bitten Sie um einen neuen Link.
link-none = Der Link ist unvollständig
link-noneText = Öffnen Sie noch einmal den ganzen Link aus der Nachricht. Aus Sicherheitsgründen speichert diese Seite ihn nirgends, daher geht er beim Neuladen verloren.
link-toSignIn = Zur Anmeldung
link-signedIn = Sie sind als { $email } angemeldet. Dieser Link meldet dieses Konto in diesem Browser ab.

project-title = Sie haben keinen Zugriff auf dieses Projekt
project-text = { $email } ist kein Mitglied des Projekts in dieser Adresse, oder es wurde gelöscht. Die Administration seiner Organisation kann Sie hinzufügen. Hier wurde nichts geändert.
project-none = Sie sind in keinem anderen Projekt Mitglied.
project-to = Zu { $name }
project-noProject = Sie sind in keinem Projekt Mitglied
project-noProjectText = Bitten Sie die Administration Ihrer Organisation, Sie zu einem hinzuzufügen.

enrolment-title = Zweiten Faktor einrichten
enrolment-text = { $name } verlangt von allen Mitgliedern einen zweiten Faktor. Richten Sie einen ein, um fortzufahren: eine Authenticator-App auf Ihrem Telefon oder einen Passkey.
enrolment-others = Ihre anderen Projekte

factors-title = Zweiter Faktor
factors-none = Nur Ihr Passwort schützt Ihr Konto. Ein zweiter Faktor hält es sicher, falls jemand Ihr Passwort erfährt.
factors-noneYet = Noch kein zweiter Faktor
factors-app = Authenticator-App
factors-appOn = Eingerichtet am { $at }
factors-appOff = Nicht eingerichtet
factors-addApp = App einrichten
factors-removeApp = App entfernen
factors-scan = Scannen Sie diesen Code mit Ihrer Authenticator-App und geben Sie dann den angezeigten Code ein.
factors-qr = QR-Code für Ihre Authenticator-App
factors-secret = Geheimnis zur Eingabe von Hand
factors-passkeys = Passkeys
factors-noPasskeys = Noch keine Passkeys
factors-addPasskey = Passkey hinzufügen
factors-passkeyText = Ein Passkey ist Ihr Fingerabdruck, Ihr Gesicht oder Ihre PIN auf einem Gerät oder ein Sicherheitsschlüssel. Damit melden Sie sich ohne Passwort an.
factors-name = Name
factors-nameHint = Um ihn in der Liste zu erkennen.
factors-created = Hinzugefügt
factors-lastUsed = Zuletzt verwendet
factors-remove = Entfernen
factors-removePasskey = Diesen Passkey entfernen
factors-actions = Aktionen
factors-never = nie
factors-removed = Entfernt.
factors-added = Zweiter Faktor hinzugefügt.
factors-losesPasskey = Mit dem Passkey { $name } können Sie sich nicht mehr anmelden
factors-losesApp = Codes Ihrer Authenticator-App werden nicht mehr akzeptiert
factors-losesLast = Ohne einen anderen Faktor schützt nur noch Ihr Passwort das Konto, und die Wiederherstellungscodes enden
factors-recovery = Wiederherstellungscodes
factors-left = { $n ->
    [0] Keine mehr übrig
    [one] { $n } Code übrig
   *[other] { $n } Codes übrig
}
factors-newCodes = Neue Wiederherstellungscodes
factors-losesCodes = Alle früheren Wiederherstellungscodes werden ungültig
factors-codesTitle = Ihre Wiederherstellungscodes
factors-codesText = Jeder Code ersetzt Ihren zweiten Faktor einmal, zum Beispiel nach dem Verlust Ihres Telefons. Bewahren Sie sie an einem sicheren Ort auf.
factors-download = Herunterladen
factors-file = deskwire-wiederherstellungscodes.txt
factors-saved = Ich habe die Codes gespeichert
factors-required = Eine Ihrer Organisationen verlangt einen zweiten Faktor, daher können Sie den letzten nicht entfernen.
