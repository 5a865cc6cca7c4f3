"""Readers of the model SDKs' requests, responses and stream events, one file per wire format.

Each has `read_request(body)`, `read_response(obj)` and a `StreamReader` with `feed(event)` and
`response()`. What they are given may be dicts, the SDK's objects or a mixture; iterators are never
consumed, and a shape that is not known is skipped, never an error.
"""
