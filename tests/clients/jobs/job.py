"""A small job with the generated client: `python job.py URL SERVER_KEY`. Prints what it has seen as JSON."""

import json
import sys

from deskwire_client import ApiClient, Configuration
from deskwire_client import api as calls
from deskwire_client import models as m
from deskwire_client.exceptions import UnprocessableEntityException


def refused(conversations: calls.ConversationsApi, conversation_id: str) -> m.ProblemDocument:
    """Return the problem document of a rating that is too high."""
    body = m.RateConversationRequest.model_construct(rating=11)
    try:
        conversations.rate_conversation(conversation_id, body)
    except UnprocessableEntityException as error:
        problem = m.ProblemDocument.from_json(error.body)
        assert problem is not None
        return problem
    raise AssertionError("a rating of 11 was taken")


def main(url: str, server_key: str) -> None:
    """Do the job."""
    with ApiClient(Configuration(host=url, access_token=server_key)) as client:
        conversations = calls.ConversationsApi(client)
        contact = m.ContactInput(userId="u1", name="Ada Lovelace")
        made = conversations.create_conversation(
            m.CreateConversationRequest(contact=contact, title="Order A-1001")
        )
        said = conversations.post_message(made.id, body=m.PostMessageRequest(text="Where is my order?"))
        answer = conversations.post_message(
            made.id,
            body=m.PostMessageRequest(text="On its way.", author=m.AuthorInput(type="agent", name="Grace")),
        )
        patched = conversations.change_conversation(
            made.id, body=m.ChangeConversationRequest(attributes={"order": "A-1001"})
        )
        conversations.rate_conversation(made.id, m.RateConversationRequest(rating=9))
        problem = refused(conversations, made.id)
        hook = calls.WebhooksApi(client).create_endpoint(
            m.CreateWebhookEndpointRequest(url="https://crm.example.org/deskwire", events=[])
        )
        page = calls.EventsApi(client).list_events(limit=50)
        listed = conversations.list_messages(made.id, limit=1)
        rest = conversations.list_messages(made.id, limit=1, cursor=listed.next_cursor)
        print(
            json.dumps(
                {
                    "conversation": made.id,
                    "title": made.title,
                    "attributes": patched.attributes,
                    "messages": [each.text for each in (*listed.items, *rest.items)],
                    "authors": [said.author.type, answer.author.type],
                    "problem": [
                        problem.status,
                        problem.code,
                        [each.pointer for each in problem.errors or []],
                    ],
                    "secret": hook.secret[:6],
                    "eventTexts": [
                        m.MessageCreatedEvent.from_dict(each.to_dict()).data.message.text
                        for each in page.items
                        if each.type == "message.created"
                    ],
                    "events": [[each.type, each.sequence] for each in page.items],
                    "rating": conversations.get_conversation(made.id).rating,
                }
            )
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
