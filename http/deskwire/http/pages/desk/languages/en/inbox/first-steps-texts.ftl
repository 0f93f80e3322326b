title = Get started
done = done
hide = Hide for everyone
hidden = Hidden for everyone in this project. You can show the list again in the project's settings.
shown = Everyone in this project sees the list again.
failed = Couldn't change it: { $reason }
undo = Undo
# $done (number), $all (number)
left = { $done } of { $all } done

steps-chat-title = Put the chat on your site
steps-chat-text = Create a channel and add its two lines to your pages. Done when a customer opens the chat.
steps-colleague-title = Invite a colleague
steps-colleague-text = They get a link and choose their own password.
steps-history-title = Import your history
steps-history-text = Create a server key, and run “deskwire import” with the export of your previous tool.
steps-webhook-title = Connect your backend
steps-webhook-text = Add a webhook to be notified of every message.
steps-secondFactor-title = Protect your account
steps-secondFactor-text = Add an authenticator app or a passkey as a second factor.
