"""A training loop of Accelerate on the CPU, for `accelerate launch --cpu`: prepare, gradient accumulation, clipping, gathered metrics. Prints losses."""
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(11)
    inputs = torch.randn(40, 8)
    targets = inputs.sum(1, keepdim=True).sin()
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Linear(32, 1))
    model, optimizer, loader, scheduler = accelerator.prepare(
        model, torch.optim.AdamW(model.parameters(), lr=0.01), DataLoader(TensorDataset(inputs, targets), batch_size=4, shuffle=True), None)
    for epoch in range(2):
        total = torch.zeros(())
        for batch, wanted in loader:
            with accelerator.accumulate(model):
                loss = (model(batch) - wanted).square().mean()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            total += loss.detach()
        with torch.no_grad():
            model.eval()
            errors = accelerator.gather_for_metrics((model(inputs[accelerator.process_index::2]) - targets[accelerator.process_index::2]).abs())
            model.train()
        mean = accelerator.reduce(total, "mean")
        accelerator.print("epoch", epoch, "loss", repr(float(mean)), "error", repr(float(errors.mean())), flush=True)
        accelerator.wait_for_everyone()
    objects = gather_object([{"rank": accelerator.process_index}])
    accelerator.print("objects", objects, broadcast_object_list([accelerator.num_processes]), flush=True)
    accelerator.print("weights", repr(sum(float(p.detach().double().abs().sum()) for p in model.parameters())), flush=True)
    accelerator.end_training()


main()
