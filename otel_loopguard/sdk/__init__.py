"""What touches the OpenTelemetry SDK: the span processor, the reporter, the thread that flushes."""
