"""Onto which provider our processor goes, and when."""

from __future__ import annotations

import atexit
import logging
import threading

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from otel_loopguard.sdk.attach import Attachment, service_name
from otel_loopguard.sdk.doorman import Doorman
from otel_loopguard.sdk.processor import LoopGuardSpanProcessor
from otel_loopguard.sdk.providers import Providers
from tests.signals import Signals


class Foreign(trace.NoOpTracerProvider):
    """A provider that is not the SDK's and takes processors."""

    def __init__(self) -> None:
        self.taken: list[object] = []

    def add_span_processor(self, processor: object) -> None:
        self.taken.append(processor)


class Phoenix(Foreign):
    """A provider that drops its own exporter, unless it is told not to."""

    exports = True

    def add_span_processor(self, processor: object, replace_default_processor: bool = True) -> None:
        super().add_span_processor(processor)
        self.exports = self.exports and not replace_default_processor


def nothing() -> None:
    """End what is open."""


def attachment_to(provider: trace.TracerProvider | None) -> Attachment:
    pipeline = Signals().pipeline()
    return Attachment(
        Providers(provider), lambda: LoopGuardSpanProcessor(pipeline=pipeline), nothing
    )


@pytest.mark.parametrize("provider", [Foreign(), Phoenix()])
def test_a_provider_of_another_make(provider: Foreign) -> None:
    attachment = attachment_to(provider)
    attachment.ensure()
    attachment.ensure()
    (processor,) = provider.taken
    assert isinstance(processor, Doorman)
    assert attachment.settled
    assert getattr(provider, "exports", True)
    attachment.detach()


def test_many_threads_attach_once() -> None:
    provider = Foreign()
    attachment = attachment_to(provider)
    threads = [threading.Thread(target=attachment.ensure) for _ in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(provider.taken) == 1
    attachment.detach()


def test_a_provider_that_is_set_late(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    current: list[trace.TracerProvider] = [trace.ProxyTracerProvider()]
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: current[0])
    attachment = attachment_to(None)
    attachment.ensure(in_use=False)
    assert caplog.messages == []
    attachment.ensure()
    attachment.ensure()
    assert len([text for text in caplog.messages if "no OpenTelemetry SDK is set up" in text]) == 1
    assert not attachment.settled
    current[0] = Foreign()
    attachment.ensure(in_use=False)
    assert attachment.settled
    assert len(current[0].taken) == 1
    attachment.detach()


def test_without_an_sdk_one_warning_says_what_to_install(
    caplog: pytest.LogCaptureFixture,
) -> None:
    attachment = attachment_to(trace.NoOpTracerProvider())
    with caplog.at_level(logging.DEBUG):
        attachment.ensure()
        attachment.ensure()
    assert attachment.settled
    (text,) = caplog.messages
    assert 'pip install "otel-loopguard[auto]"' in text
    attachment.detach()


def test_the_process_ends_what_is_open_before_the_provider_shuts_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[object] = []
    monkeypatch.setattr(atexit, "register", calls.append)
    monkeypatch.setattr(atexit, "unregister", calls.remove)
    provider = TracerProvider()
    attachment = attachment_to(provider)
    assert nothing not in calls
    attachment.ensure()
    assert calls[-1] is nothing  # the last that is registered is called first
    attachment.detach()
    assert nothing not in calls
    provider.shutdown()


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        (TracerProvider(resource=Resource.create({"service.name": "shop"})), "shop"),
        (TracerProvider(resource=Resource.create({})), None),
        (TracerProvider(resource=Resource({})), None),
        (trace.NoOpTracerProvider(), None),
    ],
)
def test_the_name_of_the_service(provider: object, name: str | None) -> None:
    assert service_name(provider) == name
