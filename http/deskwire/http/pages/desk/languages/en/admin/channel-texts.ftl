one = Channel
name = Name
nameHint = Agents see it on the channel's conversations.
sites = Websites
noSites = no website yet
changed = Changed
created = Created
id = ID
about = ID and times
enabled = enabled
disabled = disabled
lead = A channel is a chat on your websites. Its conversations come to the inbox.
none = No channels yet
noneText = Create one, copy two lines into your page, and customers can write to you.
create = New channel
createIt = Create
saved = Channel saved.
deleted = Channel deleted.
deleteOne = Delete this channel
secretOf = The secret of { $name }
secretText = Your backend signs customers' identities with it. Keep it on your server, never in a page or an app.
loses-1 = The channel { $name } and its settings
loses-2 = The sessions of its customers: their browsers are signed out within a second
loses-3 = The chat on your websites: the button disappears with the next page

stays-1 = Its conversations and contacts

fields-name = Name
fields-enabled = Enabled
fields-origins = Websites
fields-native = Apps
fields-identity = Sign-in of customers
fields-visitors = Visitors
fields-look = Look and texts
fields-startsWorkflow = Workflow
fields-survey = Survey

save-settings = Save websites
save-identity = Save sign-in
save-visitors = Save visitors
save-look = Save look
save-conversations = Save conversations

install = Put it on your website
installText = Copy these two lines into your pages:
installIdentity = To sign in the customers of your website, add a line that fetches a signed token from your backend:
check = Check your website
checkUrl = Address of a page with the chat
checkIt = Check
checkGood = Nothing is missing.
checkWarnings = The chat works here.

severities-error = Error
severities-warning = Warning

checkErrors = { $n ->
    [one] The chat does not work here yet: { $n } step is missing.
   *[other] The chat does not work here yet: { $n } steps are missing.
}
settings = Name and websites
isEnabled = Enabled
isEnabledHint = When this is off, the chat disappears from your websites, and customers can't write.
origins = Websites that may show the chat
originsHint = One per line, such as shop.example, *.shop.example for all names below it, or localhost for development.
noSitesText = No website may show this chat yet: it works in the preview only.
line = Line { NUMBER($n) }
native = Allow apps
nativeHint = Accepts calls that come from no website, such as those of a mobile app, with a signed identity only.
identity = Sign-in of customers
mode = Customers

modes-optional = may sign in
modes-required = must sign in
modes-none = are visitors

modeHint = Your backend signs the customer's identity. A customer without a signature is a visitor with an unverified name and address.
secret = Secret
secretHint = For tokens that your backend signs with HS256.
current = Current
previous = Previous
validUntil = counts until { $at }
rotate = Rotate secret
rotateIt = Create a new secret
rotateLoses = The current secret counts for 24 hours more: let your backend sign with the new one until then. An even older secret stops at once.
rotateStays = The sessions of customers who have signed in
rotated = The previous secret counts for 24 hours more.
publicKeys = Public keys
publicKeysHint = For tokens that your backend signs with a private key. To change the key, add the new one, let your backend sign with it, then remove the old one. A channel has at most five.
addKey = Add a public key
addKeyIt = Add
keyId = Key ID
keyIdHint = The kid in the head of your tokens.
algorithm = Algorithm
pem = Public key (PEM)
pemHint = Begins with -----BEGIN PUBLIC KEY-----. Never paste the private key here.
removeKey = Remove the key { $id }
remove = Remove
keyLoses = Tokens signed with this key are refused
keyStays = The sessions of customers who have signed in
visitors = Visitors
allowVisitors = Allow visitors
allowVisitorsHint = Customers who have not signed in can write. They are marked as unverified.
ask = Ask visitors before their first message

asked-name = Name
asked-email = Email
asked-phone = Phone

asking-_ = Don't ask
asking-optional = Ask, may stay empty
asking-required = Ask, required

look = Look and texts
colour = Colour
colourHint = Of the button and of customers' messages.
position = Position of the button

positions-right = Right
positions-left = Left

textsTitle = Texts
textsHint = The chat takes the first language of the customer's browser in which you have texts. If you have none, it has its own.
language = Language
addLanguage = Add a language
languageCode = Language code
languageCodeHint = Such as en, de or pt-BR.
languageMissing = Enter a language code.
languageTaken = This language has texts already: edit those.

texts-title = Title
texts-greeting = Greeting
texts-placeholder = Hint in the empty message
texts-offline = Text while the service can't be reached

greetingHint = Above an empty conversation.
offlineHint = Messages written then are kept in the customer's browser.
textsIn = Texts in { $language }
removeLanguage = Remove { $language }
textsLose = Your texts in { $language }
textsStay = The chat's own texts in this language
conversations = Conversations
nothing = None
workflow = Workflow
workflowHint = Starts with each new conversation of this channel.
survey = Survey
surveyHint = Shown after a conversation was closed.
preview = Preview
previewText = Messages that you write here start a real conversation.
openPreview = Open in a tab
previewOf = Preview of { $name }
