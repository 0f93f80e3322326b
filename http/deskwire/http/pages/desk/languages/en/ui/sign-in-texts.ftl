tryAgain = Try again
cancel = Cancel
offline = The service is not responding. Try again in a moment.
signOut = Sign out
title = Sign in to Deskwire
again = Sign in again
againText = Your session has ended. Your drafts are kept, and unsent messages go out once you sign in again.
email = Email
password = Password
newPassword = New password
signIn = Sign in
or = or
newPasswordText = Your one-time password was accepted. Choose your own password.
wrong = Wrong email or password.
disabled = Password sign-in is turned off here.
noWay = No way to sign in is set up here. Ask an administrator of this service.
withProvider = Continue with { $name }
withPasskey = Use a passkey
setUp = This service has no owner yet. Open the one-time link from its log to create the first account.
forgot = Forgot your password?
forgotTitle = Reset your password
sendLink = Send the link
backToSignIn = Back to sign-in
forgotMail = Enter your email address. If an account has it, a mail with a one-time link is sent to you.
forgotSent = If { $email } has an account here, a mail with a one-time link is on its way. Look in the spam folder too.
forgotAdministrator = This service sends no mail. Ask an administrator of your organisation for a one-time link; it lets you choose a new password.

failures-no_account = No account here belongs to your company account. Ask an administrator of your organisation to invite you.
failures-account_elsewhere = Your account here also belongs to another organisation, so this company account can't open it. Sign in with your password or a passkey.
failures-no_role = Your company account has no role here. Ask the people who manage your company accounts to give you access to Deskwire.
failures-provider_refused = Your company's sign-in page refused the request, or it was cancelled.
failures-provider_unreachable = Your company's sign-in page is not responding. Try again in a moment.
failures-sign_in_expired = The sign-in took too long, or it was started in another browser. Try again.
failures-started_elsewhere = Another website started the sign-in, so it was stopped. Choose how to sign in here.
failures-address_not_verified = Your company account has no verified email address, so it can't be matched with an account here.
failures-other_account = You signed in with another company account than this session belongs to. Try again with your own.
failures-other = The sign-in with your company account failed. Try again.

factorTitle = Confirm that it's you
factorText = Your password was accepted. Your account has a second factor too.
code = Code from your authenticator app
recoveryCode = Recovery code
confirm = Confirm
useCode = Use a code from your app
useRecoveryCode = Use a recovery code
usePassword = Use your password
usePasskey = Use a passkey
startAgain = Start again
challengeEnded = The second step took too long, or had too many wrong codes. Sign in again.
invalidCode = This code is wrong or was used before. Wait for the next one in your app.
invalidRecoveryCode = This recovery code is wrong or was used before.
wrongPassword = Wrong password.
proofTitle = Confirm that it's you
proofText = This change needs a recent proof that it's you. It lasts for 15 minutes.
proofNone = Sign in again to make this change. Your drafts are kept.
otherUser = Someone else is signed in now, so the change was not made.

passkeys-none = This browser can't use passkeys.
passkeys-cancelled = No passkey was used: the request was cancelled, or took too long.
passkeys-known = This device already has a passkey for your account.
passkeys-address = Passkeys don't work at this address of the desk. Ask an administrator.

link-titles-invitation = Join your team
link-titles-password = Choose a new password
link-titles-setUp = Set up Deskwire
link-invitation = { $name ->
    [none] You are invited to an organisation. Choose a password for your account.
   *[other] You are invited to { $name }. Choose a password for your account.
}
link-invitationKnown = { $name ->
    [none] You are invited to an organisation. Enter the password of your account to join.
   *[other] You are invited to { $name }. Enter the password of your account to join.
}
link-password = Choose a new password. All your sessions end, and this browser is signed in.
link-setUp = Create the first account. It owns this service's organisation, and invites the others.
link-checking = Checking the link
link-name = Your name
link-passwordHint = At least 12 characters.
link-choose = Password
link-yourPassword = Your password
link-organisation = Organisation
link-organisationHint = The name of your company or team. Leave empty to take it from your email address.
link-again = Confirm password
link-notTheSame = The passwords do not match.
link-buttons-invitation = Join
link-buttons-password = Save and sign in
link-buttons-setUp = Create the account
link-ended = This link doesn't work
link-endedText = It was used, has expired, or was replaced by a newer one. Ask for a new link.
link-none = The link is incomplete
link-noneText = Open the whole link from the message again. For safety, this page keeps it nowhere, so it is lost after a reload.
link-toSignIn = Go to sign-in
link-signedIn = You are signed in as { $email }. This link signs that account out in this browser.

project-title = You don't have access to this project
project-text = { $email } is not a member of the project in this address, or it was deleted. An administrator of its organisation can add you. Nothing was changed here.
project-none = You are not a member of any other project.
project-to = Go to { $name }
project-noProject = You are not a member of any project
project-noProjectText = Ask an administrator of your organisation to add you to one.

enrolment-title = Set up a second factor
enrolment-text = { $name } requires a second factor for all members. Set one up to continue: an authenticator app on your phone, or a passkey.
enrolment-others = Your other projects

factors-title = Second factor
factors-none = Only your password protects your account. A second factor keeps it safe if someone learns your password.
factors-noneYet = No second factor yet
factors-app = Authenticator app
factors-appOn = Set up { $at }
factors-appOff = Not set up
factors-addApp = Set up an app
factors-removeApp = Remove the app
factors-scan = Scan this code with your authenticator app, then enter the code that it shows.
factors-qr = QR code for your authenticator app
factors-secret = Secret, to enter by hand
factors-passkeys = Passkeys
factors-noPasskeys = No passkeys yet
factors-addPasskey = Add a passkey
factors-passkeyText = A passkey is your fingerprint, face or PIN on a device, or a security key. It signs you in without a password.
factors-name = Name
factors-nameHint = To recognize it in the list.
factors-created = Added
factors-lastUsed = Last used
factors-remove = Remove
factors-removePasskey = Remove this passkey
factors-actions = Actions
factors-never = never
factors-removed = Removed.
factors-added = Second factor added.
factors-losesPasskey = The passkey { $name } no longer signs you in
factors-losesApp = Codes of your authenticator app are no longer accepted
factors-losesLast = Without another factor, your account has only its password, and the recovery codes end
factors-recovery = Recovery codes
factors-left = { $n ->
    [0] None left
   *[other] { $n ->
        [one] { $n } code left
        *[other] { $n } codes left
    }
}
factors-newCodes = New recovery codes
factors-losesCodes = All earlier recovery codes stop working
factors-codesTitle = Your recovery codes
factors-codesText = Each code replaces your second factor once, for example after the loss of your phone. Keep them in a safe place.
factors-download = Download
factors-file = deskwire-recovery-codes.txt
factors-saved = I saved the codes
factors-required = An organisation of yours requires a second factor, so you can't remove the last one.
